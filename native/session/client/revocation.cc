// How a call ends: its windows are invalidated, then its last event goes out; and how it ends early, when the
// caller gives it up. Invalidating under a READ or WRITE would cost the session and with it every other call,
// so such a call is held until the peer has answered: its caller is told at once, its call slot and memory
// follow with RELEASED. Nothing here may emit the last event of a call while the peer can write to memory of
// the application, nor while a handler could still get what the application writes there from now on
// (docs/internals/decisions/calls.md). See client_half.h.
#include "session/client/client_half.h"

#include <algorithm>
#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
namespace ev = boundary::ev;

void ClientHalf::revoke_then(std::uint32_t slot, const Event& result) {
  ClientCall& call = calls_[slot];
  call.state = ClientState::revoking;
  call.bulk->result = result;
  issue_revokes(slot);
}

void ClientHalf::issue_revokes(std::uint32_t slot) {
  ClientBulk& bulk = *calls_[slot].bulk;
  while (bulk.issued < bulk.windows.size()) {
    if (!send_.room(1)) {
      revoke_backlog_.push_back(slot);
      return;
    }
    send_.invalidate(bulk.windows[bulk.issued++]->rkey(), {Then::revoked, slot});
    ++bulk.revoking;
  }
  if (bulk.revoking == 0) settle(slot, true);
}

void ClientHalf::on_revoked(std::uint32_t slot) {
  ClientBulk& bulk = *calls_[slot].bulk;
  if (--bulk.revoking == 0 && bulk.issued == bulk.windows.size()) settle(slot, true);
}

void ClientHalf::settle(std::uint32_t slot, bool windows_intact) {
  ClientCall& call = calls_[slot];
  Event result = call.bulk->told ? released_event(slot) : call.bulk->result;
  // Nobody can write there any more, but who keeps access.
  const bool forged = !call.bulk->told && call.bulk->answer && !open_answer(result, *call.bulk->answer);
  if (forged) result = failed_event(slot, Reason::session_lost, Processed::yes);
  call.state = call.bulk->late_may_come ? ClientState::given_up : ClientState::idle;
  end_bulk(call, windows_intact);
  count_out(call);
  // The bug that native/test/session/canary plants, to see that the oracle finds it: calls end while exposed.
#ifdef RDMA_RPC_CANARY
  if (!result.is(EvKind::settled)) return;
#endif
  shared_.events.emit(result);
  if (forged) link_.protocol_error("a large message that it has not sealed");
}

/// Opens what a sealed answer has left in its sink. False: the peer has not sealed it, and the event has
/// nothing any more.
bool ClientHalf::open_answer(Event& event, std::uint64_t number) {
  if (!event.is(EvKind::settled) || event.word[ev::region] <= 0) return true;
  const auto block = static_cast<memory::BlockId>(event.word[ev::region]);
  const auto on_wire = static_cast<std::uint32_t>(event.word[ev::message_bytes]);
  const bool shared = capabilities_.peers_keep_access && staging_ == nullptr;
  const std::uint32_t bytes = link_.open_bulk(shared_.arena.at(block).data, on_wire, number, shared);
  event.set(ev::message_bytes, bytes);
  if (bytes != 0) return true;
  shared_.arena.release(block);
  link_.recycle_of(event);
  return false;
}

void ClientHalf::end_bulk(ClientCall& call, bool windows_intact) {
  ClientBulk& bulk = *call.bulk;
  if (bulk.give_up_ns != 0) --timeouts_pending_;
  if (bulk.reserve) send_.give_up_reserve();
  if (bulk.told) {
    --held_;
    --shared_.stats.held_now;
  }
  for (auto& window : bulk.windows) {
    // A window of a queue pair in ERR may not be bindable again: it is freed, not kept.
    if (windows_intact) shared_.windows.release(std::move(window));
  }
  bulk.windows.clear();
  link_.release_pieces(bulk.pieces);
  release_staged(call);
  if (bulk.sink != memory::kNoBlock) shared_.arena.release(bulk.sink);
  link_.emit_sent(bulk.token);
  call.bulk.reset();
}

Event ClientHalf::failed_event(std::uint32_t slot, Reason reason, Processed processed) const {
  Event event = Event::of(EvKind::failed, number_, slot);
  event.set(ev::reason, reason);
  event.set(ev::processed, processed);
  return event;
}

Event ClientHalf::released_event(std::uint32_t slot) const {
  Event event = Event::of(EvKind::released, number_, slot);
  return event;
}

void ClientHalf::cancel(std::uint32_t slot, Reason reason) {
  if (!link_.is_open() || slot >= options_.call_slots) return;
  ClientCall& call = calls_[slot];
  // The answer is here, and the device takes its time over the windows.
  if (call.state == ClientState::revoking) start_timeout(call, reason);
  if (call.state != ClientState::active) return;
  note_latency(slot, call, false);
  const std::uint32_t word = wire::call_word(slot, call.generation);
  bool unsent = send_.withdraw(word);
  if (call.bulk != nullptr && call.bulk->deferred) {
    deferred_.erase(std::find(deferred_.begin(), deferred_.end(), slot));
    shared_.slots.release(call.bulk->slot);
    unsent = true;
  }
  const bool exposed = call.bulk != nullptr && call.bulk->exposed && !unsent;
  if (call.bulk != nullptr && std::exchange(call.bulk->reserve, false)) send_.give_up_reserve();
  if (!unsent) {
    link_.control(wire::FrameType::cancel, word, reason == Reason::deadline ? 4 : 1, nullptr,
                  exposed ? SendQueue::Done{Then::cancel_arrived, word} : SendQueue::Done{});
  }
  if (!link_.is_open()) return;
  const Event event = failed_event(slot, reason, unsent ? Processed::no : Processed::maybe);
  if (call.bulk == nullptr) {
    call.state = unsent ? ClientState::idle : ClientState::given_up;
    if (!unsent) ++late_expected_;
    count_out(call);
    shared_.events.emit(event);
  } else if (!exposed) {
    if (!unsent) give_up(call);
    revoke_then(slot, event);
    // Not sent, and yet its windows are bound: they are invalid when all that was posted before is done.
    if (call.state == ClientState::revoking) start_timeout(call, reason);
  } else {
    call.state = ClientState::leaving;
    start_timeout(call, reason);
#ifdef RDMA_RPC_CANARY
    shared_.events.emit(event);
#endif
  }
}

/// From now on the caller waits for so long at most (check_timeouts).
void ClientHalf::start_timeout(ClientCall& call, Reason reason) {
  ClientBulk& bulk = *call.bulk;
  if (bulk.give_up_ns != 0 || bulk.told) return;
  call.reason = reason;
  bulk.hold_since_ns = shared_.awake_ns;
  bulk.give_up_ns = shared_.awake_ns + kSettleGraceNs;
  ++timeouts_pending_;
}

/// The call ends without an answer; one may still come.
void ClientHalf::give_up(ClientCall& call) {
  ++late_expected_;
  call.bulk->late_may_come = true;
}

/// The SEND has completed. What the peer READs from now on it finds behind the CANCEL in its queue.
void ClientHalf::on_cancel_arrived(std::uint32_t word) {
  ClientCall& call = calls_[wire::call_slot(word)];
  if (call.generation != wire::call_generation(word) || call.state != ClientState::leaving) return;
  call.bulk->cancel_arrived = true;
}

/// Nothing that the call has exposed is read or written any more, though the peer has not answered. Returns
/// false where that takes the peer, or where (without windows) other calls are served by the same keys.
bool ClientHalf::withdraw(ClientBulk& bulk) {
  bulk.withdrawn =
      !bulk.windows.empty() && std::all_of(bulk.windows.begin(), bulk.windows.end(), [&](const auto& window) {
        return link_.queue_pair().withdraw(window->rkey());
      });
  return bulk.withdrawn;
}

/// The peer cannot touch it: others can have it although the call is held.
void ClientHalf::give_memory_back(ClientBulk& bulk) {
  link_.release_pieces(bulk.pieces);
  if (bulk.sink != memory::kNoBlock) shared_.arena.release(std::exchange(bulk.sink, memory::kNoBlock));
  bulk.lends_sink = false;
  link_.emit_sent(bulk.token);
}

/// The caller learns that its call has ended. Its slot and its windows stay as they are until the peer has
/// answered and no window is valid any more, and so does its memory, unless that was withdrawn.
void ClientHalf::tell(std::uint32_t slot) {
  ClientCall& call = calls_[slot];
  ClientBulk& bulk = *call.bulk;
  Processed processed = Processed::maybe;
  if (call.state == ClientState::revoking) {  // an answer that comes too late, but says whether a handler ran
    const Event& result = bulk.result;
    processed = static_cast<Processed>(result.word[ev::processed]);
    link_.recycle_of(result);
    if (result.word[ev::region] > 0) bulk.sink = static_cast<memory::BlockId>(result.word[ev::region]);
  }
  if (bulk.withdrawn) give_memory_back(bulk);
  bulk.told = true;
  bulk.give_up_ns = 0;
  --timeouts_pending_;
  ++held_;
  ++shared_.stats.calls_held;
  ++shared_.stats.held_now;
  Event event = failed_event(slot, call.reason, processed);
  event.set(ev::held, boundary::held_slot | (bulk.lends_sink ? boundary::held_sink : 0));
  shared_.events.emit(event);
}

void ClientHalf::check_timeouts() {
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
    const bool withdrawn = withdraw(*call.bulk);
    const bool answered = call.state == ClientState::revoking;
    if (withdrawn || answered || call.bulk->cancel_arrived || !call.bulk->lends_request)
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
bool ClientHalf::wire_is_stuck() {
  const bool still = still_since_ns_ != 0 && still_at_ == send_.completed() && send_.awaits_completion();
  if (!still) {
    still_since_ns_ = std::max<std::uint64_t>(shared_.awake_ns, 1);
    still_at_ = send_.completed();
  }
  return shared_.awake_ns >= still_since_ns_ + kStuckWireNs;
}

void ClientHalf::check_held() {
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
