// A completion queue with its channel, and the queue pairs on it that have failed. On the device's thread.
#pragma once

#include <vector>

#include "fabric/verbs/device.h"

namespace rdma_rpc::fabric::verbs {

class CompletionQueue final : public fabric::CompletionQueue {
 public:
  /// `epoll` watches the channel and the device's asynchronous events: either wakes the sleeper.
  CompletionQueue(Device& device, ChannelPtr channel, CqPtr cq, int epoll);
  ~CompletionQueue() override;

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override;
  void acknowledge() override;
  int fd() const override { return epoll_; }

  ibv_cq* get() const { return cq_.get(); }
  /// A queue pair on this queue may end requests without the device from now on.
  void has_failed(QueuePair& qp);
  void forget(const QueuePair& qp);

 private:
  bool translate(const ibv_wc& from, Wc& to) const;
  std::size_t poll_failed(std::span<Wc> out);

  Device& device_;
  ChannelPtr channel_;
  CqPtr cq_;
  int epoll_;
  unsigned events_ = 0;  ///< not yet acknowledged to the library
  bool stashed_ = false;
  ibv_wc stash_{};  ///< what arm() found
  std::vector<QueuePair*> failed_;
};

}  // namespace rdma_rpc::fabric::verbs
