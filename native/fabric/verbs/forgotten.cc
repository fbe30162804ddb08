// Requests that somebody has forgotten: our device, which does not carry out what it has, or the peer's,
// which does not look at what has come. Called by the watchdog once a second while a queue pair waits for
// something, on the device's thread.
#include <bit>

#include "fabric/verbs/device.h"
#include "fabric/verbs/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::uint32_t kRingAfterS = 1;

}  // namespace

std::uint32_t QueuePair::internal_sends(bool active, const Device& device) {
  if (device.capabilities().active_side_sends_first) return active ? kNudgesMax : 0;
  return device.quirks().oversleeps ? kAsksMax + kRingsMax : kAsksMax;
}

std::uint32_t QueuePair::device_sends(const QpOptions& options, const Device& device) {
  return std::min(options.send_wr_max + internal_sends(options.active, device),
                  device.capabilities().max_qp_wr);
}

bool QueuePair::look_after_requests() {
  if (state_ != QpState::rts) return false;
  const bool unheard = may_be_unheard();
  if (unheard) nudge();
  if (!sends_.device_has_some()) return unheard;
  if (sends_.head() != oldest_) {
    oldest_ = sends_.head();
    waits_s_ = 0;
  }
  ++waits_s_;
  // Of requests without a signal nobody knows. (On iWARP a completion says nothing of the peer.)
  const bool asks = !device_.capabilities().active_side_sends_first;
  if (asks && held_.empty() && !sends_.newest_tells() && has_room_for_internal()) ask_for_last_packet();
  const VerbsOptions& options = device_.options();
  const std::uint32_t limit = Watchdog::limit_s(options.ack_timeout, options.retry_count);
  if (device_.quirks().oversleeps) ring_again(limit);
  if (waits_s_ > limit && sends_.newest_tells())
    fail(device_.capabilities().name + " has not carried out a request for " + std::to_string(limit) +
         " s; that is more than all of its retries take (options ackTimeout and retryCount)");
  return true;
}

/// The oldest request has not moved for a second or more: the device may have to be told again that there is
/// something to do. Not behind a long WRITE (see holding.cc) before all retries are over.
void QueuePair::ring_again(std::uint32_t limit_s) {
  if (waits_s_ <= (sends_.device_has(last_long_write_) ? limit_s / 2 : kRingAfterS)) return;
  if (static_cast<std::int32_t>(sends_.head() - behind_ring_) > 0) rings_ = 0;
  if (rings_ == kRingsMax || !has_room_for_internal()) return;
  // When it completes, so has what is before it.
  post_empty_write(sends_.newest(), IBV_SEND_SIGNALED);
  behind_ring_ = sends_.newest() + 1;
  ++rings_;
}

/// The first message of an active side stays in the peer's socket if that is soft-iWARP (which nobody can
/// tell from here) and was slow to accept: its siw_accept() answers before it takes over the socket, and
/// whatever comes next has all of it read. Once something was received, the peer listens.
bool QueuePair::may_be_unheard() {
  const bool posted = sends_.newest() + 1 != 0;
  return device_.capabilities().active_side_sends_first && address_.active != 0 && posted &&
         receives_.head() == 0 && unheard_s_ < 1u << (kNudgesMax - 1) && has_room_for_internal();
}

/// After 1, 2, 4, 8 and 16 seconds. Without a signal, as what is before it may complete later than it would:
/// it never counts among what the device has.
void QueuePair::nudge() {
  if (std::has_single_bit(++unheard_s_)) post_empty_write(sends_.newest(), 0);
}

}  // namespace rdma_rpc::fabric::verbs
