// See connect_thread.h.
#include "fabric/verbs/connect/connect_thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "fabric/detached_thread.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

}  // namespace

WakeUp::WakeUp() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

WakeUp::~WakeUp() {
  if (fd_ >= 0) ::close(fd_);
}

void WakeUp::ring() const {
  const std::uint64_t one = 1;
  while (::write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void WakeUp::quiet() const {
  std::uint64_t count = 0;
  while (::read(fd_, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

std::shared_ptr<ConnectThread> ConnectThread::start(Call call, std::shared_ptr<WakeUp> wake_up) {
  auto attempt = std::make_shared<ConnectThread>();
  attempt->wake_up_ = std::move(wake_up);
  const int error = start_detached(kStackBytes, [attempt, task = std::move(call)] { attempt->run(task); });
  return error == 0 ? attempt : nullptr;
}

void ConnectThread::run(const Call& call) {
  const int error = call();
  Remains remains;
  std::unique_lock lock(mutex_);
  result_ = error;
  wake_up_->ring();
  changed_.notify_all();
  changed_.wait(lock, [this] { return over_; });
  remains = std::move(remains_);
}

std::optional<int> ConnectThread::result(std::chrono::milliseconds wait) {
  // A condition variable cannot be used here, because glibc before 2.30 has no timed wait on the monotonic
  // clock.
  pollfd rung{wake_up_->fd(), POLLIN, 0};
  if (wait.count() > 0) ::poll(&rung, 1, static_cast<int>(wait.count()));
  const std::lock_guard lock(mutex_);
  return result_;
}

void ConnectThread::release() { abandon({}); }

void ConnectThread::abandon(Remains remains) {
  const std::lock_guard lock(mutex_);
  remains_ = std::move(remains);
  over_ = true;
  changed_.notify_all();
}

}  // namespace rdma_rpc::fabric::verbs
