// A completion queue: one or more of the device's own ("device CQs") on one channel, so that it never
// overruns however many queue pairs are made on it. On the device's thread.
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
    std::uint32_t used = 0;     ///< by the queue pairs that there are
    std::uint32_t shared = 0;   ///< of `used`: by shared receives, as long as it lives
    std::uint32_t retired = 0;  ///< of `used`: by queue pairs that are gone, but may have left completions
    unsigned events = 0;        ///< not yet acknowledged to the library
    bool failed = false;        ///< the device said so: nothing new is put on it
    TakenCompletions taken;
  };

  CompletionQueue(Device& device, ChannelPtr channel, std::uint32_t entries, std::uint32_t entries_max);
  ~CompletionQueue() override;
  /// False: the system refuses.
  bool open();

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override;
  void acknowledge() override;
  int fd() const override { return epoll_; }

  const ChannelPtr& channel() const { return channel_; }
  /// One with so much room, or null; `shared`: and for so many shared receives, which may all complete there.
  DeviceCq* reserve(std::uint32_t entries, std::uint32_t shared);
  /// Null: there are none any more.
  void share_receives(ReceiveQueue* receives) { receives_ = receives; }
  bool shares_receives() const { return receives_ != nullptr; }
  /// So many shared receive queues have been made for it.
  std::uint32_t next_generation() { return ++generation_; }
  /// Those of a queue pair that is gone.
  void retire(DeviceCq& device_cq, std::uint32_t entries) { device_cq.retired += entries; }
  /// A queue pair on this queue may end requests without the device from now on.
  void has_failed(QueuePair& qp);
  void forget(const QueuePair& qp);

 private:
  DeviceCq* add_device_cq(std::uint32_t entries);
  std::size_t poll(DeviceCq& device_cq, std::span<Wc> out);
  bool translate(const ibv_wc& from, Wc& to) const;
  bool translate_shared(const ibv_wc& from, Wc& to) const;
  void received(QueuePair& qp, const ibv_wc& from, Wc& to) const;
  std::size_t poll_failed(std::span<Wc> out);

  Device& device_;
  ChannelPtr channel_;
  std::uint32_t entries_, entries_max_;
  int epoll_ = -1;  ///< watches the channel and the device's own reports: either wakes the sleeper
  bool watching_device_ = true;
  std::vector<std::unique_ptr<DeviceCq>> device_cqs_;  ///< queue pairs hold on to theirs
  std::size_t next_ = 0;                               ///< the one that is polled first
  unsigned polls_ = 0;
  DeviceCq* stash_cq_ = nullptr;  ///< null: arm() found nothing
  ibv_wc stash_{};                ///< what arm() found
  std::vector<QueuePair*> failed_;
  ReceiveQueue* receives_ = nullptr;
  std::uint32_t generation_ = 0;
};

}  // namespace rdma_rpc::fabric::verbs
