// Runs the blocking call of a connection attempt on a thread of its own. The thread ends with the attempt.
// Two calls may block. With rdma_cm, an iWARP driver may connect a TCP socket inside rdma_connect(). When the
// network is dead, soft-iWARP blocks there for two minutes, and then waits for the answer in
// rdma_destroy_id(). Without rdma_cm, ibv_modify_qp() resolves the hardware address of the peer. This file is
// used by the two kinds of Connection.
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

/// An eventfd that wakes the device's thread when a call has returned.
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
  /// The function that the thread calls. The call returns an errno, or 0 for success.
  using Call = std::function<int()>;
  /// Returns null when no further thread can be started.
  static std::shared_ptr<ConnectThread> start(Call call, std::shared_ptr<WakeUp> wake_up);

  /// Returns the result of the call. Returns nothing if the call is still running after `wait`, or if the
  /// wake-up was rung for another reason in the meantime.
  std::optional<int> result(std::chrono::milliseconds wait = {});
  /// Ends the attempt; the caller owns all objects.
  void release();
  /// The objects that the kernel may still be using, with the objects on which they depend. C++ destroys
  /// members from the last to the first, which is the order that is needed here.
  struct Remains {
    std::shared_ptr<rdma_event_channel> events;
    QueueObjects queue;
    IdPtr id;
  };
  /// Ends the attempt for the caller, which must no longer touch these objects: the thread destroys them as
  /// soon as the kernel releases them.
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
