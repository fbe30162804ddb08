// The call of an attempt to connect that may block, on a thread of its own, which ends with the attempt.
// An iWARP driver may connect a TCP socket inside rdma_connect(): soft-iWARP blocks in it for two minutes
// when the wire is dead, and then waits for the answer in rdma_destroy_id(). Without rdma_cm, ibv_modify_qp()
// looks for the hardware address of the peer. Used by the two kinds of Connection.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "fabric/verbs/connect/cm_objects.h"
#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

/// What wakes the device's thread when a call has returned: an eventfd.
class WakeUp {
 public:
  WakeUp();
  ~WakeUp();
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;
  int fd() const { return fd_; }
  void ring() const;
  void quiet() const;

 private:
  int fd_;
};

class ConnectThread {
 public:
  /// What is called: returns an errno, 0 for success.
  using Call = std::function<int()>;
  /// Null when there can be no further thread.
  static std::shared_ptr<ConnectThread> start(Call call, std::shared_ptr<WakeUp> wake_up);

  /// Of the call; nothing while it still runs after `wait`, or when the wake-up was rung for something else
  /// meanwhile.
  std::optional<int> result(std::chrono::milliseconds wait = {});
  /// The attempt is over and everything is the caller's.
  void release();
  /// All that the kernel may still be working on, with what that needs. Members go in the order last to
  /// first.
  struct Remains {
    std::shared_ptr<rdma_event_channel> events;
    QueueObjects queue;
    IdPtr id;
  };
  /// The attempt is over for the caller, who touches none of this any more: it is destroyed on the thread as
  /// soon as the kernel lets go of it.
  void abandon(Remains remains);

 private:
  void run(const Call& call);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int> result_;
  bool over_ = false;
  Remains remains_;
  std::shared_ptr<WakeUp> wake_up_;
};

}  // namespace rdma_rpc::fabric::verbs
