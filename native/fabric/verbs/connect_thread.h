// rdma_connect() on a thread of its own. An iWARP driver may connect a TCP socket inside that call:
// soft-iWARP blocks in it for two minutes when the wire is dead, and then waits for the answer in
// rdma_destroy_id(). So for iWARP devices each attempt has a thread, which ends with the attempt. Used by
// Connection.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "fabric/verbs/cm_objects.h"
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
  /// Null when there can be no further thread. `parameters` holds no pointer that dies before the call ends.
  static std::shared_ptr<ConnectThread> start(rdma_cm_id* id, const rdma_conn_param& parameters,
                                              std::shared_ptr<WakeUp> wake_up);

  /// What rdma_connect() has left in errno, 0 for success; nothing yet while it runs.
  std::optional<int> result();
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
  void run(rdma_cm_id* id);

  std::mutex mutex_;
  std::condition_variable over_changed_;
  std::optional<int> result_;
  bool over_ = false;
  Remains remains_;
  std::array<std::byte, 56> private_data_{};  ///< as much as rdma_cm carries
  rdma_conn_param parameters_{};
  std::shared_ptr<WakeUp> wake_up_;
};

}  // namespace rdma_rpc::fabric::verbs
