// See receives.h.
#include "session/link/receives.h"

#include <cstring>

namespace rdma_rpc::session {
namespace {
/// Number of copies added at a time. Most sessions never need more than a few copies at once, and each copy
/// uses memory in the session's lists.
constexpr std::uint32_t kCopiesStep = 16;
}  // namespace

Receives::Receives(Shared& shared, std::uint32_t session, std::uint32_t depth)
    : shared_(shared), session_(session), depth_(depth), stride_(SendSlots::stride_for(shared.slot_bytes)) {
  consumed_.reserve(depth);
  if (shared.receives.size() < depth) shared.receives.resize(depth);
}

Receives::~Receives() {
  if (shares()) shared_.shared_receives.leave(*member_, session_);
  shared_.short_messages.leave(session_);
}

/// Uses shared receives, or receives of its own when the peer does not support credit grants or the device
/// has no shared receives left.
std::string Receives::open(const Wanted& wanted) {
  std::string why;
  if (wanted.may_share && shared_.device->counters().queue_pairs >= shared_.shared_from) {
    SharedReceives::Member member;
    if (shared_.shared_receives.join(member, depth_)) member_ = member;
  }
  if (!shares()) {
    memory_ = shared_.receive_pool.take(own_bytes(), &why);
    if (!memory_) return why;
    for (std::uint32_t i = 0; i < depth_; ++i) consumed_.push_back(i);
  }
  // Lengths and texts are read more than once. Therefore, when peers can still write to receives, everything
  // is read from a copy.
  opens_in_place_ = wanted.opens_in_place;
  if (opens_in_place_ || shared_.device->capabilities().peers_keep_access) {
    copies_.reset(new std::byte[own_bytes()]);
  }
  first_overflow_slot_ = windows_are_shared() ? shared_.shared_receives.first_overflow_slot() : depth_;
  const std::uint32_t overflow = windows_are_shared() ? member_->overflow : depth_;
  for (std::uint32_t i = 0; i < kOverflowSlots; ++i) free_overflow_slots_.give(overflow + i);
  return "";
}

void Receives::describe(fabric::QpOptions& queues) const {
  queues.recv_wr_max = shares() ? 0 : depth_;
  queues.short_apart = copies_ != nullptr;
  if (!shares()) return;
  queues.shared_receives = shared_.shared_receives.queue();
  queues.tag = session_;
}

std::span<std::byte> Receives::window(std::uint32_t number) const {
  const std::size_t bytes = readable_bytes();
  if (std::size_t{number} * stride_ >= bytes) return {};
  const std::size_t start = std::size_t{boundary::window_start(number)} * stride_;
  const std::size_t end = std::size_t{boundary::window_end(number)} * stride_;
  return {readable_at() + start, std::min(end, bytes) - start};
}

std::optional<ReceiveSlot> Receives::readable(std::uint32_t receive, const fabric::Wc& wc) {
  if (copies_ == nullptr) return ReceiveSlot::receive(receive);
  // Sealed frames do not become short messages, because they are decrypted in their slot, which must also
  // hold the tag.
  if (wc.apart != nullptr && !opens_in_place_) {
    if (const std::optional<std::uint32_t> number = shared_.short_messages.take(session_, wc.bytes)) {
      std::memcpy(shared_.short_messages.data() + ShortMessages::offset_of(*number), wc.apart, wc.bytes);
      consumed_.push_back(receive);
      return ReceiveSlot::short_message(*number);
    }
  }
  if (free_copies_.empty()) {
    const std::uint32_t more = std::min(kCopiesStep, depth_ - copies_made_);
    copies_made_ += more;
    for (std::uint32_t i = 1; i <= more; ++i) free_copies_.give(copies_made_ - i);
  }
  const std::optional<std::uint32_t> copy = free_copies_.take();
  if (!copy) return std::nullopt;
  copied_.give(receive);
  const std::byte* from = wc.apart != nullptr ? wc.apart : received_at() + std::size_t{receive} * stride_;
  std::memcpy(copies_.get() + std::size_t{*copy} * stride_, from, wc.bytes);
  return ReceiveSlot::copy(*copy);
}

void Receives::recycle(ReceiveSlot slot) {
  switch (slot.kind()) {
    case ReceiveSlot::Kind::short_message:
      return shared_.short_messages.release(slot.number(), session_);
    case ReceiveSlot::Kind::overflow:
      return free_overflow_slots_.give(slot.number());
    case ReceiveSlot::Kind::receive:
      return consumed_.push_back(slot.number());
    case ReceiveSlot::Kind::copy:
      // When JS uses no copy, no receive waits to be released, and the slot is already free.
      if (const std::optional<std::uint32_t> receive = copied_.take()) {
        free_copies_.give(slot.number());
        consumed_.push_back(*receive);
      }
  }
}

std::optional<std::uint32_t> Receives::post(fabric::QueuePair& qp, std::string* why) {
  if (shares()) {
    const auto granted = shared_.shared_receives.post(*member_, consumed_, shared_.now_ns);
    if (!granted) {
      *why = "the device refuses to post shared receives";
      return std::nullopt;
    }
    consumed_.clear();
    return granted;
  }
  const std::span<fabric::RecvWr> receives = std::span(shared_.receives).first(consumed_.size());
  for (std::size_t i = 0; i < receives.size(); ++i) {
    const auto addr = reinterpret_cast<std::uint64_t>(memory_.data()) + std::uint64_t{consumed_[i]} * stride_;
    receives[i] = {kReceiveBit | wr_id_base(session_) | consumed_[i], {addr, stride_, memory_.lkey()}};
  }
  const std::size_t taken = qp.post_recv(receives);
  posted_ += static_cast<std::uint32_t>(taken);
  if (taken != receives.size()) {
    *why = "the device accepted only " + std::to_string(taken) + " of " + std::to_string(receives.size()) +
           " receives";
    return std::nullopt;
  }
  consumed_.clear();
  return static_cast<std::uint32_t>(taken);
}

std::uint32_t Receives::kept() const {
  const std::uint32_t away = shares() ? member_->taken : depth_ - posted_;
  return away + kOverflowSlots + shared_.short_messages.kept_by(session_) -
         static_cast<std::uint32_t>(consumed_.size() + free_overflow_slots_.size());
}

}  // namespace rdma_rpc::session
