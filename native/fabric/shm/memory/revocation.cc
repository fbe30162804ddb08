// The end of a right: no byte may move through it any more once its revocation is reported. A peer may be
// inside a copy at that moment; its hazard word says so. It is waited for, briefly; after that the pages are
// taken away from under it. See queue_pair.h; the rule is the last one at the top of fabric.h.
#include <sched.h>

#include <utility>
#include <vector>

#include "fabric/shm/queue/queue_pair.h"

namespace rdma_rpc::fabric::shm {
namespace {

/// How often to look (a system call) whether a peer that cannot be interrupted is dead.
constexpr auto kPollInterval = std::chrono::milliseconds(10);

}  // namespace

void QueuePair::await_release(std::uint32_t hazard, std::uint64_t addr, std::uint64_t bytes) {
  const auto grace = std::chrono::microseconds(device_.options().revoke_grace_us);
  awaited_ = {hazard, addr, bytes, std::chrono::steady_clock::now() + grace, {}};
}

// Called when the shared state says already that this queue pair has failed, so that the peer begins no
// further copy: revokes its windows, and waits for the copy that the peer may be at.
void QueuePair::await_any_release() {
  std::vector<std::pair<std::uint32_t, Grant>> windows;
  device_.table().for_each(ProtectionTable::Kind::window, [&](std::uint32_t key, const Grant& grant) {
    if (grant.qp_num == qp_num_) windows.emplace_back(key, grant);
  });
  for (const auto& [key, grant] : windows) device_.table().revoke(key);

  const std::uint32_t hazard = own_->hazard.load(std::memory_order_seq_cst);
  if (hazard == 0 || awaited_.hazard == hazard) return;
  // A hazard that fits nothing is a key that was refused already, which the peer is about to find out: no
  // range.
  Grant held;
  if (hazard == kHazardReceive) {
    const std::uint32_t number = own_->hazard_receive.load(std::memory_order_relaxed);
    const Receive& receive = receives_[number & receive_mask_];
    if (number - received_ < published_ - received_) {
      held.addr = receive.addr;
      held.length = receive.length;
    }
  }
  // The word is the peer's to write. A region that no peer has a right to, such as another session's
  // receives, is nothing that it could be copying through.
  constexpr std::uint32_t kRemote = access_remote_read | access_remote_write;
  if (const Grant* region = device_.table().find(hazard, ProtectionTable::Kind::region);
      region != nullptr && (region->access & kRemote) != 0) {
    held = *region;
  }
  for (const auto& [key, grant] : windows) {
    if (key == hazard) held = grant;
  }
  await_release(hazard, held.addr, held.length);
}

bool QueuePair::in_grace() const { return std::chrono::steady_clock::now() < awaited_.grace_end; }

bool QueuePair::released() {
  if (peer_holds(awaited_.hazard)) {
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
  while (awaited_.hazard != 0) {
    const bool last = !in_grace();
    if (released() || last) return;
    ::sched_yield();
  }
}

}  // namespace rdma_rpc::fabric::shm
