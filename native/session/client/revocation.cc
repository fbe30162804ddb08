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
  Event result = call.bulk->notified ? Event::of(EvKind::released, link_.number(), slot) : call.bulk->result;
  // From here on no peer can write to the response, except on fabrics on which peers keep their access.
  const bool forged = !call.bulk->notified && call.bulk->answer && !open_answer(result, *call.bulk->answer);
  if (forged) result = Event::failed(link_.number(), slot, Reason::session_lost, Processed::yes);
  call.state = call.bulk->late_may_come ? ClientState::cancelled : ClientState::idle;
  end_bulk(call, windows_intact);
  count_.ended(call.is_call());
  // native/test/session/canary plants this bug, to show that the tests find it: calls end while their memory
  // is exposed.
#ifdef RDMA_RPC_CANARY
  if (!result.is(EvKind::settled)) return;
#endif
  shared_.events.emit(result);
  if (forged) link_.protocol_error("a large message that it has not sealed");
}

/// Decrypts a sealed response in its reply buffer. Returns false when the peer has not sealed the response.
/// The memory and the receive slot of the event have then been released.
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
  if (bulk.timeout_at_ns != 0) --timeouts_pending_;
  if (bulk.reserve) link_.send().release_reserve();
  if (bulk.notified) {
    --pending_release_;
    --shared_.stats.calls_pending_release;
  }
  for (auto& window : bulk.windows) {
    // A window of a queue pair in ERR may not be bindable again, so it is freed and not reused.
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
  if (bulk.timeout_at_ns != 0 || bulk.notified) return;
  call.reason = reason;
  bulk.hold_since_ns = shared_.awake_ns;
  bulk.timeout_at_ns = shared_.awake_ns + kSettleGraceNs;
  ++timeouts_pending_;
}

void Revocation::on_cancel_arrived(std::uint32_t word) {
  ClientCall& call = calls_[wire::call_slot(word)];
  if (call.generation != wire::call_generation(word) || call.state != ClientState::leaving) return;
  call.bulk->cancel_arrived = true;
}

/// Revokes the peer's access to the memory of a call that it has not answered. Returns false if the fabric
/// needs the peer for this. The function also returns false without windows, because other calls use the same
/// keys.
bool Revocation::revoke(ClientBulk& bulk) {
  bulk.revoked = !bulk.windows.empty() &&
                 std::all_of(bulk.windows.begin(), bulk.windows.end(),
                             [&](const auto& window) { return link_.queue_pair().revoke(window->rkey()); });
  return bulk.revoked;
}

/// Releases revoked memory. The call is still pending release, but the peer can no longer access the memory.
void Revocation::give_memory_back(ClientBulk& bulk) {
  release_gather_entries(link_, bulk.gather_entries);
  if (bulk.reply_buffer != memory::kNoBlock)
    shared_.arena.release(std::exchange(bulk.reply_buffer, memory::kNoBlock));
  bulk.lends_reply_buffer = false;
  link_.emit_sent(bulk.token);
}

/// Notifies the caller that its call has ended. The call slot and the windows stay in use until the peer has
/// answered and all windows are invalid. Memory that was not revoked also stays in use until then.
void Revocation::notify_caller(std::uint32_t slot) {
  ClientCall& call = calls_[slot];
  ClientBulk& bulk = *call.bulk;
  Processed processed = Processed::maybe;
  if (call.state == ClientState::revoking) {  // a late response, which still tells whether a handler ran
    const Event& result = bulk.result;
    processed = static_cast<Processed>(result.word[ev::processed]);
    link_.recycle_of(result);
    if (result.word[ev::region] > 0)
      bulk.reply_buffer = static_cast<memory::BlockId>(result.word[ev::region]);
  }
  if (bulk.revoked) give_memory_back(bulk);
  bulk.notified = true;
  bulk.timeout_at_ns = 0;
  --timeouts_pending_;
  ++pending_release_;
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
    if (call.bulk == nullptr || call.bulk->timeout_at_ns == 0 || call.bulk->timeout_at_ns > shared_.awake_ns)
      return;
    // If the fabric cannot revoke access, the server may read the buffers of the request until the CANCEL has
    // arrived. Until then, bytes that the application writes there could reach a handler.
    const bool revoked = revoke(*call.bulk);
    const bool answered = call.state == ClientState::revoking;
    if (revoked || answered || call.bulk->cancel_arrived || !call.bulk->lends_request)
      notify_caller(slot);
    else
      waits = true;
  });
  if (!waits) still_since_ns_ = 0;
  if (waits && wire_is_stuck()) {
    return link_.fail(
        "the peer's device has acknowledged nothing for " + std::to_string(kStuckWireNs / 1'000'000'000) +
        " s while a cancelled call waits for its memory; check the network and the peer's host");
  }
  link_.post_now();
}

/// Returns true when the device has completed nothing for too long. A slow or stopped server does not cause
/// this: the device continues to complete work requests, and frames that wait for credits have not been
/// posted.
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
  if (pending_release_ == 0) return;
  bool too_long = false;
  calls_.for_each([&](std::uint32_t, const ClientCall& call) {
    if (call.bulk == nullptr || !call.bulk->notified) return;
    too_long = too_long || shared_.awake_ns - call.bulk->hold_since_ns >= kHoldLimitNs;
  });
  if (too_long) {
    link_.fail("the server has not confirmed the end of a call that was cancelled " +
               std::to_string(kHoldLimitNs / 1'000'000'000) +
               " s ago; the session ends, since only that makes the memory of the call safe");
  }
}

}  // namespace rdma_rpc::session
