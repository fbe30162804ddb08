// See watchdog.h.
#include "fabric/verbs/queue/watchdog.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "fabric/verbs/device.h"
#include "fabric/verbs/queue/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// Seconds for the transfer itself, on the slowest device: 1 GiB at 1 Gbit/s takes 9 s.
constexpr std::uint32_t kTransferS = 15;
/// The IBTA specification allows a device to wait for four times the acknowledgement timeout.
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
  posted_ = device_.check_requests();
  running_ = false;
  start();
}

bool QueuePair::check_requests() {
  if (state_ != QpState::rts || type_ != QpType::rc) return false;
  const bool unheard = nudge_ != nullptr && nudge_->second();
  if (!sends_.device_has_some()) return unheard;
  if (sends_.head() != oldest_) {
    oldest_ = sends_.head();
    waits_s_ = 0;
  }
  ++waits_s_;
  // Unsignaled requests report nothing, so a completion is requested. (On iWARP a completion says nothing
  // about the peer, but without one, a device that has stopped would go unnoticed.)
  if (!sends_.holds_some() && !sends_.newest_tells() && has_room_for_internal()) ask_for_last_packet();
  const VerbsOptions& options = device_.options();
  const std::uint32_t limit = Watchdog::limit_s(options.ack_timeout, options.retry_count);
  if (workaround_ != nullptr) workaround_->second(waits_s_, limit);
  if (waits_s_ > limit && sends_.newest_tells())
    fail(device_.capabilities().name + " has not carried out a request for " + std::to_string(limit) +
         " s; that is more than all of its retries take (options ackTimeout and retryCount)");
  return true;
}

}  // namespace rdma_rpc::fabric::verbs
