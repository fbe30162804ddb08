// The completion queue: gives its queue pairs their turns, and sleeps and wakes. What readiness the kernel
// reports is kept as the edge that it is, so that an idle queue pair costs nothing, however many there are.
// On the device's thread.
//
// fd() is an epoll descriptor that watches another one, with the sockets in it. acknowledge() takes the news
// out of that one. Only after some polls without a sleep it stops watching, too, so that fd() is silent while
// nobody sleeps, whatever the sockets do: who sleeps between two answers pays for no change of it.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/completion_ring.h"
#include "fabric/fabric.h"
#include "fabric/tcp/connect/socket.h"
#include "fabric/tcp/queue/gathering.h"

namespace rdma_rpc::fabric::tcp {

class Device;
class QueuePair;

using Cqe = Completion<QueuePair>;

class CompletionQueue final : public fabric::CompletionQueue {
 public:
  explicit CompletionQueue(Device& device);
  ~CompletionQueue() override;
  /// False: the system refuses.
  bool open();

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override;
  void acknowledge() override;
  int fd() const override { return outer_.get(); }

  /// See CompletionRing.
  void make_room(std::uint32_t requests) { ring_.make_room(requests); }
  void forget(const QueuePair& qp, std::uint32_t requests) { ring_.forget(qp, requests); }
  void push(const Cqe& cqe);
  /// A queue pair has a connection from now on. False: the system refuses.
  bool add(QueuePair& qp, int fd);
  /// Before the descriptor is closed or given away.
  void remove(QueuePair& qp, int fd);
  /// This queue pair wants a turn at the next poll().
  void enqueue(QueuePair& qp);
  /// Whether so many messages of a queue pair may wait for more. It then wants a turn.
  bool may_gather(std::uint32_t messages) { return gathering_.may_wait(messages, ring_.size()); }
  /// poll() will find something, though no completion: a state that has changed.
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
  Gathering<std::chrono::steady_clock> gathering_;
  std::vector<QueuePair*> connected_, waiting_, turns_;
  std::uint32_t polls_ = 0;
  std::uint32_t awake_since_ = 0;  ///< a round
  bool watched_ = false;           ///< fd() tells of the sockets
  bool others_ = false;            ///< the device's reactor has news
  bool armed_ = false, rung_ = false, changed_ = false;
};

}  // namespace rdma_rpc::fabric::tcp
