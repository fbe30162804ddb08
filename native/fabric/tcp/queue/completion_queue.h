// The completion queue gives its queue pairs their turns, sleeps and wakes. The kernel reports a change of
// readiness only once, and this class remembers it. Therefore any number of idle queue pairs costs nothing.
// This code runs on the device's thread. fd() is an epoll descriptor that watches an inner epoll descriptor,
// which contains the sockets. acknowledge() reads the events of the inner descriptor. A thread that polls
// without sleeping does not need fd(), so after 16 such polls fd() stops watching the inner descriptor. A
// thread that sleeps between two responses never reaches this number, so it does not pay for changes of the
// epoll set.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/completion_ring.h"
#include "fabric/fabric.h"
#include "fabric/tcp/connect/socket.h"
#include "fabric/tcp/queue/coalescing.h"

namespace rdma_rpc::fabric::tcp {

class Device;
class QueuePair;

using Cqe = Completion<QueuePair>;

class CompletionQueue final : public fabric::CompletionQueue {
 public:
  explicit CompletionQueue(Device& device);
  ~CompletionQueue() override;
  /// Creates the descriptors. Returns false when the system refuses.
  bool open();

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override;
  void acknowledge() override;
  int fd() const override { return outer_.get(); }

  /// See CompletionRing.
  void make_room(std::uint32_t requests) { ring_.make_room(requests); }
  void forget(const QueuePair& qp, std::uint32_t requests) { ring_.forget(qp, requests); }
  void push(const Cqe& cqe);
  /// Starts to watch the connection of a queue pair. Returns false when the system refuses.
  bool add(QueuePair& qp, int fd);
  /// Must be called before the descriptor is closed or given away.
  void remove(QueuePair& qp, int fd);
  /// Gives this queue pair a turn in the next poll().
  void enqueue(QueuePair& qp);
  /// Returns whether `messages` messages of a queue pair may wait for more. If they may wait, the queue pair
  /// enqueues itself.
  bool may_coalesce(std::uint32_t messages) { return coalescing_.may_wait(messages, ring_.size()); }
  /// Wakes the user because a state has changed, although poll() returns no completion for the change.
  void announce();

 private:
  bool asks_socket() const;
  void watch_sockets(bool on);
  void poll_sockets();
  void give_turns();
  void progress();

  Device& device_;
  UniqueFd outer_, inner_, bell_;
  CompletionRing<QueuePair> ring_;
  Coalescing<std::chrono::steady_clock> coalescing_;
  std::vector<QueuePair*> connected_, waiting_, turns_;
  std::uint32_t polls_ = 0;
  std::uint32_t awake_since_ = 0;  ///< value of polls_ at the last wake-up
  bool watched_ = false;           ///< fd() watches the sockets
  bool others_ = false;            ///< the device's reactor has events
  bool armed_ = false, rung_ = false, changed_ = false;
};

}  // namespace rdma_rpc::fabric::tcp
