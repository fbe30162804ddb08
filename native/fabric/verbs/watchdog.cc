// See watchdog.h.
#include "fabric/verbs/watchdog.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "fabric/verbs/device.h"
#include "fabric/verbs/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// For the transfer itself, on the slowest device: 1 GiB at 1 Gbit/s takes 9 s.
constexpr std::uint32_t kTransferS = 15;
/// IBTA allows a device four times the acknowledgement timeout.
constexpr double kTimeoutUnitS = 4 * 4.096e-6;

}  // namespace

std::uint32_t Watchdog::limit_s(std::uint8_t ack_timeout, std::uint8_t retry_count) {
  const double once = kTimeoutUnitS * static_cast<double>(std::uint64_t{1} << ack_timeout);
  return kTransferS + static_cast<std::uint32_t>(once * (retry_count + 1));
}

Watchdog::~Watchdog() {
  if (timer_ >= 0) ::close(timer_);
}

bool Watchdog::open() {
  timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  return timer_ >= 0;
}

void Watchdog::run() {
  const itimerspec in_a_second{{}, {1, 0}};
  running_ = ::timerfd_settime(timer_, 0, &in_a_second, nullptr) == 0;
}

void Watchdog::progress() {
  std::uint64_t expired = 0;
  if (!running_ || ::read(timer_, &expired, sizeof expired) != sizeof expired) return start();
  posted_ = device_.look_after_requests();
  running_ = false;
  start();
}

}  // namespace rdma_rpc::fabric::verbs
