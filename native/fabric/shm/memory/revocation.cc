// Revokes keys and windows. After a revocation has been reported, no byte may move through the revoked key. A
// peer may be inside a copy when the key is revoked, which its in-use marker (QpSegment::in_use) shows. The
// owner waits for the copy for a short grace period, and then replaces the pages under the copy. See
// queue_pair.h; the rule about dead keys is at the top of fabric.h.
#include <sched.h>

#include <utility>
#include <vector>

#include "fabric/shm/queue/queue_pair.h"

namespace rdma_rpc::fabric::shm {
namespace {

/// Interval at which a system call checks whether a peer whose copy cannot be interrupted is dead.
constexpr auto kPollInterval = std::chrono::milliseconds(10);

}  // namespace

void QueuePair::await_release(std::uint32_t marker, std::uint64_t addr, std::uint64_t bytes) {
  const auto grace = std::chrono::microseconds(device_.options().revoke_grace_us);
  awaited_ = {marker, addr, bytes, std::chrono::steady_clock::now() + grace, {}};
}

// Revokes the windows of this queue pair and waits for a copy in progress. This function is called when the
// shared state already says that this queue pair has failed, so that the peer begins no other copy.
void QueuePair::await_any_release() {
  std::vector<std::pair<std::uint32_t, KeyEntry>> windows;
  device_.table().for_each(ProtectionTable::Kind::window, [&](std::uint32_t key, const KeyEntry& key_entry) {
    if (key_entry.qp_num == qp_num_) windows.emplace_back(key, key_entry);
  });
  for (const auto& [key, key_entry] : windows) device_.table().revoke(key);

  const std::uint32_t marker = own_->in_use.load(std::memory_order_seq_cst);
  if (marker == 0 || awaited_.marker == marker) return;
  // If the marker matches no key, the marker names a key that was already invalid when the peer set it. The
  // peer will notice that the range is empty, and copy nothing.
  KeyEntry held;
  if (marker == kInUseReceive) {
    const std::uint32_t number = own_->in_use_receive.load(std::memory_order_relaxed);
    const Receive& receive = receives_[number & receive_mask_];
    if (number - received_ < published_ - received_) {
      held.addr = receive.addr;
      held.length = receive.length;
    }
  }
  // The peer writes the marker, so the marker may be false. A region without remote rights, such as another
  // session's receives, is never the region through which the peer is copying.
  if (const KeyEntry* region = device_.table().find(marker, ProtectionTable::Kind::region);
      region != nullptr && (region->access & kRemoteAccess) != 0) {
    held = *region;
  }
  for (const auto& [key, key_entry] : windows) {
    if (key == marker) held = key_entry;
  }
  await_release(marker, held.addr, held.length);
}

bool QueuePair::in_grace() const { return std::chrono::steady_clock::now() < awaited_.grace_end; }

bool QueuePair::released() {
  if (peer_holds(awaited_.marker)) {
    const auto now = std::chrono::steady_clock::now();
    if (now < awaited_.grace_end || now < awaited_.next_poll) return false;
    awaited_.next_poll = now + kPollInterval;
    const bool ours = awaited_.bytes == 0 || peer_is_dead() || device_.reclaim(awaited_.addr, awaited_.bytes);
    if (!ours) return false;
  }
  awaited_ = {};
  return true;
}

void QueuePair::wait_for_release() {
  while (awaited_.marker != 0) {
    const bool last = !in_grace();
    if (released() || last) return;
    ::sched_yield();
  }
}

}  // namespace rdma_rpc::fabric::shm
