// Implements a completion queue of the simulated fabric. Queue pairs fill it and the session polls it, on the
// world's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/completion_ring.h"
#include "fabric/fabric.h"
#include "fabric/taken_completions.h"

namespace rdma_rpc::fabric {

class SimDevice;
class SimQueuePair;

using Cqe = Completion<SimQueuePair>;

class SimCompletionQueue final : public CompletionQueue {
 public:
  SimCompletionQueue(SimDevice& device, std::uint32_t entries, int event_fd);
  ~SimCompletionQueue() override;

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override;
  bool arm_solicited() override;
  void acknowledge() override;
  int fd() const override { return event_fd_; }

  /// See CompletionRing.
  void make_room(std::uint32_t requests) { ring_.make_room(requests); }
  void give_room_back(std::uint32_t requests) { ring_.give_room_back(requests); }
  void push(const Cqe& cqe);
  /// Wakes the sleeping user, because poll() has other work than returning completions.
  void announce();
  /// Makes poll() conclude the connection attempt of this queue pair when the time of the attempt has come.
  void add_connecting(SimQueuePair& qp) { connecting_.push_back(&qp); }
  /// Must be called for a queue pair that is being destroyed.
  void forget(const SimQueuePair& qp, std::uint32_t requests);

  std::uint64_t mark() const { return taken_.mark(entries_); }
  bool has_passed(std::uint64_t mark) const { return taken_.has_passed(mark); }

  bool shares_receives = false;  ///< a shared receive queue belongs to it

 private:
  void conclude_connections();
  void take_apart(Wc& wc);

  SimDevice& device_;
  const std::uint32_t entries_;
  const int event_fd_;
  CompletionRing<SimQueuePair> ring_;
  TakenCompletions taken_;
  std::vector<SimQueuePair*> connecting_;
  std::vector<std::vector<std::byte>> apart_;  ///< messages for Wc::apart, until the next poll()
  enum class Armed : std::uint8_t { no, for_solicited, for_all };
  Armed armed_ = Armed::no;
  bool readable_ = false;
};

}  // namespace rdma_rpc::fabric
