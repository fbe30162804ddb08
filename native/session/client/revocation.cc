// See revocation.h.
#include "session/client/revocation.h"

#include <algorithm>
#include <utility>

#include "session/link/bulk_memory.h"

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
namespace ev = boundary::ev;

void Revocation::end(std::uint32_t slot, const Event& result) {
  ClientCall& call = calls_[slot];
  call.state = ClientState::revoking;
  call.bulk->result = result;
  issue_invalidates(slot);
}

void Revocation::issue_invalidates(std::uint32_t slot) {
  ClientBulk& bulk = *calls_[slot].bulk;
  while (bulk.issued < bulk.windows.size()) {
    if (!link_.send().room(1)) {
      backlog_.push_back(slot);
      return;
    }
    link_.send().invalidate(bulk.windows[bulk.issued++]->rkey(), {Then::invalidated, slot});
    ++bulk.revoking;
  }
  if (bulk.revoking == 0) settle(slot, true);
}

void Revocation::move_waiting() {
  for (const std::uint32_t slot : std::exchange(backlog_, {})) issue_invalidates(slot);
}

void Revocation::on_invalidated(std::uint32_t slot) {
  ClientBulk& bulk = *calls_[slot].bulk;
  if (--bulk.revoking == 0 && bulk.issued == bulk.windows.size()) settle(slot, true);
}

void Revocation::settle(std::uint32_t slot, bool windows_intact) {
  ClientCall& call = calls_[slot];
  Event result = call.bulk->told ? Event::of(EvKind::released, link_.number(), slot) : call.bulk->result;
  // Nobody can write there any more, but who keeps access.
  const bool forged = !call.bulk->told && call.bulk->answer && !open_answer(result, *call.bulk->answer);
  if (forged) result = Event::failed(link_.number(), slot, Reason::session_lost, Processed::yes);
  call.state = call.bulk->late_may_come ? ClientState::given_up : ClientState::idle;
  end_bulk(call, windows_intact);
  count_.ended(call.is_call());
  // The bug that native/test/session/canary plants, to see that the oracle finds it: calls end while exposed.
#ifdef RDMA_RPC_CANARY
  if (!result.is(EvKind::settled)) return;
#endif
  shared_.events.emit(result);
  if (forged) link_.protocol_error("a large message that it has not sealed");
}

/// Opens what a sealed answer has left in its reply buffer. False: the peer has not sealed it, and the event
/// has nothing any more.
bool Revocation::open_answer(Event& event, std::uint64_t number) {
  if (!event.is(EvKind::settled) || event.word[ev::region] <= 0) return true;
  const auto block = static_cast<memory::BlockId>(event.word[ev::region]);
  const auto on_wire = static_cast<std::uint32_t>(event.word[ev::message_bytes]);
  const bool shared = link_.capabilities().peers_keep_access && link_.staging() == nullptr;
  const std::uint32_t bytes = link_.open_bulk(shared_.arena.at(block).data, on_wire, number, shared);
  event.set(ev::message_bytes, bytes);
  if (bytes != 0) return true;
  shared_.arena.release(block);
  link_.recycle_of(event);
  return false;
}

void Revocation::end_bulk(ClientCall& call, bool windows_intact) {
  ClientBulk& bulk = *call.bulk;
  if (bulk.give_up_ns != 0) --timeouts_pending_;
  if (bulk.reserve) link_.send().give_up_reserve();
  if (bulk.told) {
    --held_;
    --shared_.stats.calls_pending_release;
  }
  for (auto& window : bulk.windows) {
    // A window of a queue pair in ERR may not be bindable again: it is freed, not kept.
    if (windows_intact) shared_.windows.release(std::move(window));
  }
  bulk.windows.clear();
  release_gather_entries(link_, bulk.gather_entries);
  memory_.release_staged(bulk);
  if (bulk.reply_buffer != memory::kNoBlock) shared_.arena.release(bulk.reply_buffer);
  link_.emit_sent(bulk.token);
  call.bulk.reset();
}

void Revocation::start_timeout(ClientCall& call, Reason reason) {
  ClientBulk& bulk = *call.bulk;
  if (bulk.give_up_ns != 0 || bulk.told) return;
  call.reason = reason;
  bulk.hold_since_ns = shared_.awake_ns;
  bulk.give_up_ns = shared_.awake_ns + kSettleGraceNs;
  ++timeouts_pending_;
}

void Revocation::on_cancel_arrived(std::uint32_t word) {
  ClientCall& call = calls_[wire::call_slot(word)];
  if (call.generation != wire::call_generation(word) || call.state != ClientState::leaving) return;
  call.bulk->cancel_arrived = true;
}

/// Nothing that the call has exposed is read or written any more, though the peer has not answered. Returns
/// false where that takes the peer, or where (without windows) other calls are served by the same keys.
bool Revocation::revoke(ClientBulk& bulk) {
  bulk.revoked = !bulk.windows.empty() &&
                 std::all_of(bulk.windows.begin(), bulk.windows.end(),
                             [&](const auto& window) { return link_.queue_pair().revoke(window->rkey()); });
  return bulk.revoked;
}

/// The peer cannot touch it: others can have it although the call is held.
void Revocation::give_memory_back(ClientBulk& bulk) {
  release_gather_entries(link_, bulk.gather_entries);
  if (bulk.reply_buffer != memory::kNoBlock)
    shared_.arena.release(std::exchange(bulk.reply_buffer, memory::kNoBlock));
  bulk.lends_reply_buffer = false;
  link_.emit_sent(bulk.token);
}

/// The caller learns that its call has ended. Its slot and its windows stay as they are until the peer has
/// answered and no window is valid any more, and so does its memory, unless that was revoked.
void Revocation::tell(std::uint32_t slot) {
  ClientCall& call = calls_[slot];
  ClientBulk& bulk = *call.bulk;
  Processed processed = Processed::maybe;
  if (call.state == ClientState::revoking) {  // an answer that comes too late, but says whether a handler ran
    const Event& result = bulk.result;
    processed = static_cast<Processed>(result.word[ev::processed]);
    link_.recycle_of(result);
    if (result.word[ev::region] > 0)
      bulk.reply_buffer = static_cast<memory::BlockId>(result.word[ev::region]);
  }
  if (bulk.revoked) give_memory_back(bulk);
  bulk.told = true;
  bulk.give_up_ns = 0;
  --timeouts_pending_;
  ++held_;
  ++shared_.stats.calls_released_late;
  ++shared_.stats.calls_pending_release;
  Event event = Event::failed(link_.number(), slot, call.reason, processed);
  event.set(ev::pending_release,
            boundary::pending_slot | (bulk.lends_reply_buffer ? boundary::pending_reply_buffer : 0));
  shared_.events.emit(event);
}

void Revocation::check_timeouts() {
  if (timeouts_pending_ == 0) {
    still_since_ns_ = 0;
    return;
  }
  bool waits = false;
  calls_.for_each([&](std::uint32_t slot, ClientCall& call) {
    if (call.bulk == nullptr || call.bulk->give_up_ns == 0 || call.bulk->give_up_ns > shared_.awake_ns)
      return;
    // Until the CANCEL has arrived, what the application writes to its buffers could still reach a handler,
    // where the fabric cannot keep the peer from reading it.
    const bool revoked = revoke(*call.bulk);
    const bool answered = call.state == ClientState::revoking;
    if (revoked || answered || call.bulk->cancel_arrived || !call.bulk->lends_request)
      tell(slot);
    else
      waits = true;
  });
  if (!waits) still_since_ns_ = 0;
  if (waits && wire_is_stuck()) {
    return link_.fail("nothing that was sent has been acknowledged for " +
                      std::to_string(kStuckWireNs / 1'000'000'000) +
                      " s: the wire stands still, and a call that was given up has lent its memory");
  }
  link_.post_now();
}

/// The device completes nothing, for too long. A server that is only slow, or stopped, is no reason: its
/// device goes on, and what waits for credits has not been posted.
bool Revocation::wire_is_stuck() {
  const bool still =
      still_since_ns_ != 0 && still_at_ == link_.send().completed() && link_.send().awaits_completion();
  if (!still) {
    still_since_ns_ = std::max<std::uint64_t>(shared_.awake_ns, 1);
    still_at_ = link_.send().completed();
  }
  return shared_.awake_ns >= still_since_ns_ + kStuckWireNs;
}

void Revocation::check_held() {
  if (held_ == 0) return;
  bool too_long = false;
  calls_.for_each([&](std::uint32_t, const ClientCall& call) {
    if (call.bulk == nullptr || !call.bulk->told) return;
    too_long = too_long || shared_.awake_ns - call.bulk->hold_since_ns >= kHoldLimitNs;
  });
  if (too_long) {
    link_.fail("the peer has not let go of a call that was given up " +
               std::to_string(kHoldLimitNs / 1'000'000'000) +
               " s ago: only the end of the session makes its memory safe");
  }
}

}  // namespace rdma_rpc::session
