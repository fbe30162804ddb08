// Keeps the requests of one queue that have been posted and not completed. For each request it keeps the
// number that the user gave it, and the objects that the request keeps alive (regions, address handles). The
// fabric knows a request by its sequence number. This file is used by the queues of this folder, on the JS
// thread. Allocates nothing after construction.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "checked/counted.h"
#include "fabric/fabric.h"

namespace rdma_rpc::checked {

struct Request {
  double wr_id = 0;
  fabric::Opcode opcode = fabric::Opcode::send;
};

/// The interface of a queue that its completion queue uses.
class Source {
 public:
  virtual ~Source() = default;
  /// Ends the request of this sequence number, and releases the objects that it kept alive.
  virtual Request complete(std::uint32_t sequence) = 0;
};

/// The requests of a queue whose completions arrive in order.
class Outstanding final : public Source {
 public:
  /// `kept` is the largest number of objects that a request keeps alive.
  Outstanding(std::uint32_t depth, std::uint32_t kept)
      : depth_(depth),
        kept_max_(kept),
        mask_(std::bit_ceil(depth) - 1),
        requests_(std::size_t{mask_} + 1),
        kept_(requests_.size() * kept) {}

  std::uint32_t depth() const { return depth_; }
  std::uint32_t room() const { return depth_ - static_cast<std::uint32_t>(end_ - begin_); }

  /// Returns the sequence number of the request that add() will add after `nth` other requests.
  std::uint32_t next(std::uint32_t nth) const { return static_cast<std::uint32_t>(end_ + nth); }
  /// Adds a request, and the objects that it keeps alive. The queue must have room for it.
  void add(const Request& request, std::span<const Counted* const> kept) {
    const std::size_t index = end_++ & mask_;
    requests_[index] = request;
    for (std::size_t i = 0; i < kept.size(); ++i) kept_[index * kept_max_ + i] = Kept(kept[i]);
  }
  /// Ends this request and all requests before it that did not ask for completions of their own.
  Request complete(std::uint32_t sequence) override {
    const auto ahead = static_cast<std::uint32_t>(sequence - static_cast<std::uint32_t>(begin_));
    const std::uint64_t ends = begin_ + ahead;
    const Request completed = requests_[ends & mask_];
    while (begin_ <= ends && begin_ != end_) release_oldest();
    return completed;
  }
  /// Ends all requests.
  void drop() {
    while (begin_ != end_) release_oldest();
  }

 private:
  void release_oldest() {
    const std::size_t first = (begin_++ & mask_) * kept_max_;
    for (std::size_t i = first; i < first + kept_max_ && kept_[i] != nullptr; ++i) kept_[i].reset();
  }

  std::uint32_t depth_, kept_max_;
  std::uint32_t mask_;  // the tables have a power of two of rows
  std::uint64_t begin_ = 0, end_ = 0;
  std::vector<Request> requests_;
  std::vector<Kept> kept_;  // kept_max_ for each request; null after the last object of a request
};

}  // namespace rdma_rpc::checked
