// Implements a completion queue that never overruns, independent of the number of its queue pairs. The queue
// consists of one or more completion queues of the device ("device CQs") on one channel. This code runs on
// the device's thread.
#pragma once

#include <memory>
#include <vector>

#include "fabric/taken_completions.h"
#include "fabric/verbs/device.h"

namespace rdma_rpc::fabric::verbs {

class ReceiveQueue;

class CompletionQueue final : public fabric::CompletionQueue {
 public:
  struct DeviceCq {
    CqPtr cq;
    std::uint32_t entries = 0;
    std::uint32_t used = 0;    ///< entries reserved by existing queue pairs
    std::uint32_t shared = 0;  ///< part of `used`: reserved for shared receives, as long as the queue lives
    /// part of `used`: reserved by destroyed queue pairs that may have left completions
    std::uint32_t retired = 0;
    unsigned events = 0;  ///< not yet acknowledged to the library
    bool failed = false;  ///< the device has reported a failure: nothing new is put on it
    TakenCompletions taken;
  };

  /// `vector` is the device's interrupt for its events.
  CompletionQueue(Device& device, ChannelPtr channel, std::uint32_t entries, std::uint32_t entries_max,
                  int vector);
  ~CompletionQueue() override;
  /// Returns false when the system refuses.
  bool open();

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override { return arm(false); }
  bool arm_solicited() override { return arm(true); }
  void acknowledge() override;
  int fd() const override { return epoll_; }

  const ChannelPtr& channel() const { return channel_; }
  /// Returns a device CQ with `entries` free entries, or null. `shared` is the number of shared receives that
  /// may complete there in addition.
  DeviceCq* reserve(std::uint32_t entries, std::uint32_t shared);
  /// Sets the shared receive queue whose receives complete on this queue, or null when that receive queue has
  /// been destroyed.
  void share_receives(ReceiveQueue* receives) { receives_ = receives; }
  bool shares_receives() const { return receives_ != nullptr; }
  /// Returns the number of the next shared receive queue that is created for this completion queue, from 1.
  std::uint32_t next_generation() { return ++generation_; }
  /// Marks the entries of a destroyed queue pair.
  void retire(DeviceCq& device_cq, std::uint32_t entries) { device_cq.retired += entries; }
  /// Registers a queue pair that may end requests without the device from now on.
  void has_failed(QueuePair& qp);
  void forget(const QueuePair& qp);

 private:
  bool arm(bool solicited_only);
  DeviceCq* add_device_cq(std::uint32_t entries);
  std::size_t poll(DeviceCq& device_cq, std::span<Wc> out);
  bool translate(const ibv_wc& from, Wc& to) const;
  bool translate_shared(const ibv_wc& from, Wc& to) const;
  void received(QueuePair& qp, const ibv_wc& from, Wc& to) const;
  std::size_t poll_failed(std::span<Wc> out);
  /// Ends the queue pairs of a device CQ that is broken.
  void lose(DeviceCq& device_cq, int error);

  Device& device_;
  ChannelPtr channel_;
  std::uint32_t entries_, entries_max_;
  const int vector_;
  int epoll_ = -1;  ///< watches the channel and the device's events: either wakes the sleeper
  bool watching_device_ = true;
  std::vector<std::unique_ptr<DeviceCq>> device_cqs_;  ///< queue pairs keep pointers to them
  std::size_t next_ = 0;                               ///< index of the one polled first
  unsigned polls_ = 0;
  DeviceCq* stash_cq_ = nullptr;  ///< null when arm() found nothing
  ibv_wc stash_{};                ///< the completion that arm() found
  std::vector<QueuePair*> failed_;
  ReceiveQueue* receives_ = nullptr;
  std::uint32_t generation_ = 0;
};

}  // namespace rdma_rpc::fabric::verbs
