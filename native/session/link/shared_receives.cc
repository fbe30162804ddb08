// See shared_receives.h.
#include "session/link/shared_receives.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rdma_rpc::session {

/// Reserves addresses for the memory of all receives, because JS sees it as one buffer. Only its registered
/// parts are ever accessed.
bool SharedReceives::open(std::uint32_t most) {
  const std::uint64_t most_slots = kSharedBytesMax / stride_;
  const std::uint32_t wanted = std::min(
      {device_.capabilities().max_srq_wr, kSharedReceivesMax, static_cast<std::uint32_t>(most_slots)});
  capacity_ = wanted / kSharedChunk * kSharedChunk;
  if (capacity_ < most) return false;
  const std::uint32_t members = capacity_ / kCertainReceives;
  slots_ = capacity_ + members * kOverflowSlots;
  AnonymousMemory memory(size());
  if (memory.data() == nullptr) return false;
  std::string why;
  queue_ = device_.create_receive_queue(cq_, capacity_, &why);
  if (queue_ == nullptr) return false;
  memory_ = std::move(memory);
  owner_.assign(capacity_, kNoSession);
  for (std::uint32_t i = members; i-- > 0;) free_overflow_slots_.give(capacity_ + i * kOverflowSlots);
  return true;
}

bool SharedReceives::grow(std::uint32_t wanted) {
  while (registered() < wanted) {
    const std::uint32_t first = registered();
    if (first + kSharedChunk > capacity_) return false;
    std::string why;
    auto region = device_.reg_mr(data() + std::size_t{first} * stride_, std::size_t{kSharedChunk} * stride_,
                                 fabric::access_local_write, &why);
    if (region == nullptr) return false;
    regions_.push_back(std::move(region));
    std::vector<std::uint32_t> slots(kSharedChunk);
    std::iota(slots.begin(), slots.end(), first);
    // If the device refuses some of these receives, post_slots() removes them from the pool again.
    credit_pool_.grow(kSharedChunk);
    if (!post_slots(slots)) return false;
  }
  return true;
}

bool SharedReceives::join(Member& member, std::uint32_t most) {
  if (data() == nullptr && !open(most)) return false;
  const std::uint32_t certain = std::min(most, kCertainReceives);
  const std::optional<std::uint32_t> overflow = free_overflow_slots_.take();
  if (!overflow) return false;
  // A single busy session can get as many credits as it can use. Many busy sessions share the credits.
  const std::uint64_t beyond = std::min<std::uint64_t>(
      (beyond_ + most - certain) * (1 + kCreditShare) / kCreditShare + 1, kSharedBeyond);
  const std::uint64_t wanted = (members_ + 1) * std::uint64_t{kCertainReceives} + beyond;
  grow(static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, capacity_)));
  if (!credit_pool_.open(member.account, certain, most)) {
    free_overflow_slots_.give(*overflow);
    return false;
  }
  member.target = certain;
  member.overflow = *overflow;
  ++members_;
  beyond_ += most - certain;
  return true;
}

void SharedReceives::leave(Member& member, std::uint32_t session) {
  --members_;
  beyond_ -= member.account.most - member.account.certain;
  credit_pool_.close(member.account);
  if (member.taken != 0) {
    std::vector<std::uint32_t> slots;
    for (std::uint32_t slot = 0; slot < registered(); ++slot) {
      if (owner_[slot] == session) slots.push_back(slot);
    }
    post_slots(slots);
  }
  free_overflow_slots_.give(member.overflow);
  member = {};
}

void SharedReceives::came_for_ended_session(std::uint32_t slot) {
  --posted_;
  post_slots({&slot, 1});
}

/// Posts these receives. Returns whether the device has accepted all of them. Refused receives are not lost,
/// because the credit pool counts them again when a later post succeeds.
bool SharedReceives::post_slots(std::span<const std::uint32_t> slots) {
  if (refused() != 0) offer_refused();
  const std::size_t taken = offer(slots);
  for (const std::uint32_t slot : slots.subspan(taken)) owner_[slot] = kRefused;
  credit_pool_.shrink(static_cast<std::uint32_t>(slots.size() - taken));
  return taken == slots.size();
}

void SharedReceives::offer_refused() {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t slot = 0; slot < registered(); ++slot) {
    if (owner_[slot] == kRefused) slots.push_back(slot);
  }
  const std::size_t taken = offer(slots);
  for (const std::uint32_t slot : std::span(slots).subspan(taken)) owner_[slot] = kRefused;
  credit_pool_.grow(static_cast<std::uint32_t>(taken));
}

/// Posts these receives. Returns how many of them the device has accepted.
std::size_t SharedReceives::offer(std::span<const std::uint32_t> slots) {
  wrs_.resize(std::max(wrs_.size(), slots.size()));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::uint32_t slot = slots[i];
    owner_[slot] = kNoSession;
    wrs_[i] = {kReceiveBit | std::uint64_t{kAllSessions} << 32 | slot,
               {reinterpret_cast<std::uint64_t>(data()) + std::uint64_t{slot} * stride_, stride_,
                regions_[slot / kSharedChunk]->lkey()}};
  }
  const std::size_t taken = queue_->post(std::span(wrs_).first(slots.size()));
  posted_ += static_cast<std::uint32_t>(taken);
  return taken;
}

/// Doubles the target of a busy session, and halves the target of a session that has become less busy. An
/// idle session sends no frames, so its target does not change.
void SharedReceives::adapt(Member& member, std::uint64_t now_ns) {
  const std::uint64_t passed_ns = now_ns - std::min(now_ns, member.since_ns);
  const bool busy = member.frames >= member.target;
  if (!busy && passed_ns < kCreditEpochNs) return;
  if (busy && passed_ns <= kCreditEpochNs) {
    member.target = std::min(2 * member.target, member.account.most);
  } else if (member.frames < member.target / 2) {
    member.target = std::max(member.target / 2, member.account.certain);
  }
  member.frames = 0;
  member.since_ns = now_ns;
}

std::optional<std::uint32_t> SharedReceives::post(Member& member, std::span<const std::uint32_t> slots,
                                                  std::uint64_t now_ns) {
  if (!post_slots(slots)) return std::nullopt;
  member.taken -= static_cast<std::uint32_t>(slots.size());
  credit_pool_.give_back(member.account, static_cast<std::uint32_t>(slots.size()));
  adapt(member, now_ns);
  const std::uint32_t held = member.account.held;
  return held >= member.target ? 0 : credit_pool_.take(member.account, member.target - held);
}

}  // namespace rdma_rpc::session
