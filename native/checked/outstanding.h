// The requests of one queue that have been posted and not completed: the number that their user gave them,
// and what they keep (regions, address handles). A queue of the fabric knows a request by its sequence
// number. Used by the queues of this folder, on the JS thread. No allocation after construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::checked {

struct Request {
  double wr_id = 0;
  fabric::Opcode opcode = fabric::Opcode::send;
};

/// An object that a request keeps alive until it has completed.
using Kept = std::shared_ptr<const void>;

/// A queue as its completion queue sees it.
class Source {
 public:
  virtual ~Source() = default;
  /// Ends the request of this sequence number, and releases what it kept.
  virtual Request complete(std::uint32_t sequence) = 0;
};

/// The requests of a queue whose completions come in order.
class Outstanding final : public Source {
 public:
  /// `kept` is the largest number of things that a request keeps.
  Outstanding(std::uint32_t depth, std::uint32_t kept)
      : depth_(depth), kept_max_(kept), requests_(depth), kept_(std::size_t{depth} * kept) {}

  std::uint32_t depth() const { return depth_; }
  std::uint32_t room() const { return depth_ - static_cast<std::uint32_t>(end_ - begin_); }

  /// The sequence number of the request that add() will add as the `nth` from now, from 0.
  std::uint32_t next(std::uint32_t nth) const { return static_cast<std::uint32_t>(end_ + nth); }
  /// There must be room.
  void add(const Request& request, std::span<const Kept> kept) {
    const std::size_t index = end_++ % depth_;
    requests_[index] = request;
    std::copy(kept.begin(), kept.end(), kept_.begin() + static_cast<std::ptrdiff_t>(index * kept_max_));
  }
  /// Ends all requests before it, too: their completion was not asked for.
  Request complete(std::uint32_t sequence) override {
    const auto ahead = static_cast<std::uint32_t>(sequence - static_cast<std::uint32_t>(begin_));
    const std::uint64_t ends = begin_ + ahead;
    const Request completed = requests_[ends % depth_];
    while (begin_ <= ends && begin_ != end_) release_oldest();
    return completed;
  }
  /// Ends all requests.
  void drop() {
    while (begin_ != end_) release_oldest();
  }

 private:
  void release_oldest() {
    const std::size_t first = begin_++ % depth_ * kept_max_;
    for (std::size_t i = first; i < first + kept_max_ && kept_[i] != nullptr; ++i) kept_[i].reset();
  }

  std::uint32_t depth_, kept_max_;
  std::uint64_t begin_ = 0, end_ = 0;
  std::vector<Request> requests_;
  std::vector<Kept> kept_;  // kept_max_ for each request, null after its last one
};

}  // namespace rdma_rpc::checked
