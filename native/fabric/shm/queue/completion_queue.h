// The completion queue: polls its queue pairs in turn, and sleeps and wakes. Completions wait in their queue
// pairs, so it never overruns, whatever the number of entries asked for. Used on the device's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/acceptor.h"
#include "fabric/fabric.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory/segment.h"

namespace rdma_rpc::fabric::shm {

class Device;
class QueuePair;

class CompletionQueue final : public fabric::CompletionQueue {
 public:
  CompletionQueue(Device& device, std::uint32_t poller, UniqueFd pipe_read, UniqueFd pipe_write);
  ~CompletionQueue() override;

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override;
  void acknowledge() override;
  int fd() const override { return reactor_ ? reactor_->fd() : pipe_read_.get(); }
  bool peer_shares_cpu() const override;

  std::uint32_t poller() const { return poller_index_; }
  /// The end of the pipe that peers open.
  int doorbell_fd() const { return pipe_write_.get(); }
  /// For completions that are made here, not by a peer: a request that is done, a flush.
  void wake_if_armed() {
    if (armed_) wake();
  }

  // By descriptors.
  /// False: the system refuses.
  bool watch_lines();
  Reactor& reactor() { return *reactor_; }
  /// Peers with this token are led here from now on. Empty, or why not.
  std::string open_acceptor(Token* token);
  /// So many queue pairs more, or fewer, are connecting: their control connections are looked at with each
  /// poll.
  void note_handshake(int more) { handshakes_ += more; }

  void add(QueuePair& qp) { queue_pairs_.push_back(&qp); }
  void remove(QueuePair& qp) { std::erase(queue_pairs_, &qp); }

 private:
  /// Its own pipe among the control connections: acknowledge() reads it when it has been rung.
  struct OwnPipe final : EventHandler {
    bool rung = false;
    void ready() override { rung = true; }
    void expired() override {}
  };
  void note_cpu();
  void wake();

  Device& device_;
  std::uint32_t poller_index_;
  Poller& poller_;
  UniqueFd pipe_read_, pipe_write_;
  std::vector<QueuePair*> queue_pairs_;
  std::size_t next_ = 0;
  bool armed_ = false;
  std::uint32_t sleeps_ = 0;
  std::uint32_t polls_ = 0;
  std::uint32_t cpu_ = ~0u;
  int handshakes_ = 0;
  OwnPipe own_pipe_;
  std::unique_ptr<Reactor> reactor_;  ///< by descriptors
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace rdma_rpc::fabric::shm
