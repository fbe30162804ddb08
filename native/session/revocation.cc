// How a call of the client half ends: its windows are invalidated, then its last event goes out; and how it
// ends early, when the caller gives it up. Nothing here may emit the last event of a call while the peer can
// touch its memory. Staging memory is not the call's: it may outlive it, in quarantine. See session.h.
#include <algorithm>

#include "session/session.h"

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
using boundary::Reason;
using boundary::Sent;
namespace ev = boundary::ev;

void Session::revoke_then(std::uint32_t slot, const Event& result) {
  ClientCall& call = client_calls_[slot];
  call.state = ClientState::revoking;
  call.bulk->result = result;
  if (call.bulk->give_up_ns != 0) call.bulk->give_up_ns = shared_.now_ns + kRevokeLimitNs;
  issue_revokes(slot);
}

void Session::issue_revokes(std::uint32_t slot) {
  ClientBulk& bulk = *client_calls_[slot].bulk;
  while (bulk.issued < bulk.windows.size()) {
    if (!send_->room(1)) {
      revoke_backlog_.push_back(slot);
      return;
    }
    send_->invalidate(bulk.windows[bulk.issued++]->rkey(), {Then::revoked, slot});
    ++bulk.revoking;
  }
  if (bulk.revoking == 0) settle(slot, true);
}

void Session::on_revoked(std::uint32_t slot) {
  ClientBulk& bulk = *client_calls_[slot].bulk;
  if (--bulk.revoking == 0 && bulk.issued == bulk.windows.size()) settle(slot, true);
}

void Session::settle(std::uint32_t slot, bool windows_intact) {
  ClientCall& call = client_calls_[slot];
  const Event result = call.bulk->result;
  call.state = call.bulk->late_may_come ? ClientState::given_up : ClientState::idle;
  // A late answer may still name one of these windows. What is bound anew must not be what it ends, and
  // soft-RoCE crashes on a window that is bound no more: a freed one it refuses.
  end_client_bulk(call, windows_intact && !call.bulk->late_may_come);
  --calls_in_flight_;
#ifdef RDMA_RPC_CANARY  // the bug that native/test/session/canary plants, to see that the oracle finds it:
                        // calls end while exposed
  if (result.word[ev::kind] != static_cast<std::int32_t>(EvKind::settled)) return;
#endif
  shared_.events.emit(result);
}

void Session::end_client_bulk(ClientCall& call, bool windows_intact) {
  ClientBulk& bulk = *call.bulk;
  if (bulk.give_up_ns != 0) --impatient_;
  for (auto& window : bulk.windows) {
    // A window of a queue pair in ERR may not be bindable again: it is freed, not kept.
    if (windows_intact) shared_.windows.give_back(std::move(window));
  }
  bulk.windows.clear();
  release_pieces(bulk.pieces);
  release_staged(call);
  if (bulk.sink != memory::kNoBlock) shared_.arena.release(bulk.sink);
  emit_sent(bulk.token);
  call.bulk.reset();
}

Event Session::failed_event(std::uint32_t slot, Reason reason, Sent sent) const {
  Event event;
  event.word[ev::kind] = static_cast<std::int32_t>(EvKind::failed);
  event.word[ev::session] = static_cast<std::int32_t>(number_);
  event.word[ev::call] = static_cast<std::int32_t>(slot);
  event.word[ev::timeout_us] = static_cast<std::int32_t>(reason);
  event.word[ev::sent] = static_cast<std::int32_t>(sent);
  return event;
}

void Session::cancel(std::uint32_t slot, Reason reason) {
  if (!open() || slot >= options_.call_slots) return;
  ClientCall& call = client_calls_[slot];
  if (call.state != ClientState::active) return;
  const std::uint32_t word = wire::call_word(slot, call.generation);
  bool unsent = send_->withdraw(word);
  if (call.bulk != nullptr && call.bulk->deferred) {
    deferred_.erase(std::find(deferred_.begin(), deferred_.end(), slot));
    shared_.slots.give_back(call.bulk->slot);
    unsent = true;
  }
  if (!unsent) control(wire::FrameType::cancel, word, reason == Reason::deadline ? 4 : 1);
  if (!open()) return;
  const Event event = failed_event(slot, reason, unsent ? Sent::no : Sent::maybe);
  if (call.bulk == nullptr) {
    call.state = unsent ? ClientState::idle : ClientState::given_up;
    if (!unsent) ++late_expected_;
    --calls_in_flight_;
    shared_.events.emit(event);
  } else if (unsent || !call.bulk->exposed) {
    if (!unsent) give_up(call);
    revoke_then(slot, event);
  } else {
    // Invalidating now could hit a READ or WRITE in flight, which would cost the whole session: ask first,
    // force later.
    call.state = ClientState::leaving;
    call.reason = reason;
    call.bulk->give_up_ns = shared_.now_ns + kSettleGraceNs;
    ++impatient_;
#ifdef RDMA_RPC_CANARY
    shared_.events.emit(event);
#endif
  }
}

/// The call ends without an answer; one may still come.
void Session::give_up(ClientCall& call) {
  ++late_expected_;
  call.bulk->late_may_come = true;
}

bool Session::check_patience() {
  if (!open()) return false;
  if (stalled_since_ns_ == kSinceNow) stalled_since_ns_ = std::max<std::uint64_t>(shared_.now_ns, 1);
  if (stalled_since_ns_ != 0 && shared_.now_ns >= stalled_since_ns_ + kNoCreditNs) {
    fail("the peer has returned no credits for " + std::to_string(kNoCreditNs / 1'000'000'000) + " s");
    return false;
  }
  if (impatient_ == 0) return impatient();
  for (std::uint32_t slot = 0; slot < options_.call_slots; ++slot) {
    ClientCall& call = client_calls_[slot];
    if (call.bulk == nullptr || call.bulk->give_up_ns == 0 || call.bulk->give_up_ns > shared_.now_ns)
      continue;
    if (call.state == ClientState::leaving && shared_.exposure == Exposure::shared) {
      fail(
          "a cancelled call got no answer within the grace: only the end of the session makes its memory "
          "safe");
      return false;
    }
    if (call.state == ClientState::leaving) {
      give_up(call);
      revoke_then(slot, failed_event(slot, call.reason, Sent::maybe));
    } else if (call.state == ClientState::revoking) {
      fail("the device has not invalidated a window for " + std::to_string(kRevokeLimitNs / 1'000'000) +
           " ms");
      return false;
    }
  }
  post_now();
  return impatient();
}

}  // namespace rdma_rpc::session
