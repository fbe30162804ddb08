// See removal.h.
#include "fabric/verbs/connect/removal.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "fabric/detached_thread.h"
#include "fabric/verbs/connect/connect_thread.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::size_t kRemovalStackBytes = 64 * 1024;

/// The devices that this process has used before, and the thread that waits for their removal. The object is
/// never destroyed, because a waiting thread cannot be joined at exit.
class Watch {
 public:
  static Watch& instance() {
    static Watch& only = *new Watch;
    return only;
  }

  /// The id must be destroyed before its channel, because librdmacm destroys the id through the channel.
  /// (With two function parameters, the compiler would choose the order of destruction.)
  struct Kept {
    std::shared_ptr<rdma_event_channel> channel;
    IdPtr anchor;
  };

  void add(Kept added) {
    const std::lock_guard lock(mutex_);
    const auto same = [&](const Kept& kept) { return kept.anchor->verbs == added.anchor->verbs; };
    if (std::any_of(kept_.begin(), kept_.end(), same)) return;
    // Without the watching thread nothing can be done, and the device will stay open after its removal.
    if (changed_.fd() < 0 || (!running_ && !start())) return;
    kept_.push_back(std::move(added));
    changed_.ring();
  }

 private:
  bool start() {
    running_ = start_detached(kRemovalStackBytes, [this] {
                 for (;;) wait();
               }) == 0;
    return running_;
  }

  void wait() {
    std::vector<pollfd> fds{{changed_.fd(), POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      for (const Kept& kept : kept_) fds.push_back({kept.channel->fd, POLLIN, 0});
    }
    if (::poll(fds.data(), fds.size(), -1) <= 0) return;
    changed_.quiet();
    const std::lock_guard lock(mutex_);
    for (Kept& kept : kept_) {
      if (is_removed(kept)) let_go_of_removed(std::move(kept.anchor));
    }
    std::erase_if(kept_, [](const Kept& kept) { return kept.anchor == nullptr; });
  }

  static bool is_removed(const Kept& kept) {
    bool removed = false;
    rdma_cm_event* event = nullptr;
    while (rdma_get_cm_event(kept.channel.get(), &event) == 0) {
      removed = removed || event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
      rdma_ack_cm_event(event);
    }
    return removed;
  }

  std::mutex mutex_;
  std::vector<Kept> kept_;
  WakeUp changed_;
  bool running_ = false;
};

}  // namespace

void let_go_of_removed(IdPtr anchor) {
  // librdmacm closes a removed device only when it scans the devices again and finds a new one. Until then it
  // keeps the numbers of the device's descriptors, so these are redirected to /dev/null and not closed. The
  // descriptors are still open now, because an id is bound to the device.
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  for (const int fd : {anchor->verbs->cmd_fd, anchor->verbs->async_fd}) ::dup3(nowhere, fd, O_CLOEXEC);
  ::close(nowhere);
}

void watch_for_removal(std::shared_ptr<rdma_event_channel> channel, IdPtr anchor) {
  Watch::instance().add({std::move(channel), std::move(anchor)});
}

}  // namespace rdma_rpc::fabric::verbs
