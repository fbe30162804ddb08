// The requests of one queue that have been posted and not completed, oldest first: the number that their user
// gave them, and the regions that they keep. A queue of the fabric knows a request by its sequence number.
// Used by the queues of this folder, on the JS thread. No allocation after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "checked/region.h"

namespace rdma_rpc::checked {

class Outstanding {
 public:
  struct Request {
    double wr_id = 0;
    fabric::Opcode opcode = fabric::Opcode::send;
  };

  /// `sges` is the largest number of scatter/gather entries of a request.
  Outstanding(std::uint32_t depth, std::uint32_t sges)
      : depth_(depth), sges_(sges), requests_(depth), regions_(std::size_t{depth} * sges) {}

  std::uint32_t depth() const { return depth_; }
  std::uint32_t room() const { return depth_ - static_cast<std::uint32_t>(end_ - begin_); }

  /// The sequence number of the request that add() will add as the `nth` from now, from 0.
  std::uint32_t next(std::uint32_t nth) const { return static_cast<std::uint32_t>(end_ + nth); }
  /// There must be room.
  void add(const Request& request, std::span<const std::shared_ptr<Region>> regions) {
    const std::size_t index = end_++ % depth_;
    requests_[index] = request;
    std::copy(regions.begin(), regions.end(), regions_.begin() + static_cast<std::ptrdiff_t>(index * sges_));
  }
  /// Ends the request of this sequence number and all before it, whose completion was not asked for.
  Request complete(std::uint32_t sequence) {
    const std::uint64_t ends =
        begin_ + static_cast<std::uint32_t>(sequence - static_cast<std::uint32_t>(begin_));
    const Request completed = requests_[ends % depth_];
    while (begin_ <= ends && begin_ != end_) {
      const std::size_t first = begin_++ % depth_ * sges_;
      for (std::size_t i = first; i < first + sges_ && regions_[i] != nullptr; ++i) regions_[i].reset();
    }
    return completed;
  }

 private:
  std::uint32_t depth_, sges_;
  std::uint64_t begin_ = 0, end_ = 0;
  std::vector<Request> requests_;
  std::vector<std::shared_ptr<Region>> regions_;  // sges_ for each request, null after its last one
};

}  // namespace rdma_rpc::checked
