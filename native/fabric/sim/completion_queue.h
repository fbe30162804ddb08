// A completion queue of the simulated fabric. Filled by queue pairs, polled by the session; on the world's
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

class SimDevice;
class SimQueuePair;

/// A completion and what polling it gives back to its queue pair.
struct Cqe {
  Wc wc;
  SimQueuePair* qp;
  bool receive;
  std::uint64_t send_end;  ///< sends with an index below this one are complete
};

class SimCompletionQueue final : public CompletionQueue {
 public:
  SimCompletionQueue(SimDevice& device, std::uint32_t entries, int event_fd);
  ~SimCompletionQueue() override;

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override;
  void acknowledge() override;
  int fd() const override { return event_fd_; }

  /// Makes room for all that a further queue pair can have outstanding, so that push() never overflows.
  void make_room(std::uint32_t requests);
  /// Of a queue pair that is gone.
  void give_back(std::uint32_t requests) { room_ -= requests; }
  void push(const Cqe& cqe);
  /// Something is there for poll() besides completions: wakes who waits for it.
  void announce();
  /// poll() will conclude the connection of this queue pair when its time has come.
  void add_connecting(SimQueuePair& qp) { connecting_.push_back(&qp); }
  /// Forgets the completions of a queue pair that is being destroyed.
  void forget(const SimQueuePair& qp);

 private:
  void conclude_connections();

  SimDevice& device_;
  const std::uint32_t entries_;
  const int event_fd_;
  std::uint64_t room_ = 0;
  std::vector<Cqe> ring_;
  std::vector<SimQueuePair*> connecting_;
  std::uint64_t head_ = 0, tail_ = 0;
  bool armed_ = false, readable_ = false;
};

}  // namespace rdma_rpc::fabric
