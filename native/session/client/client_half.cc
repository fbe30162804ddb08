// Life of the client half: its turn, and the end of the session. See client_half.h.
#include "session/client/client_half.h"

#include <utility>

namespace rdma_rpc::session {

using boundary::Processed;
using boundary::Reason;

ClientHalf::ClientHalf(Link& link)
    : Half(link), calls_(link.options().call_slots, shared_.counters_start & wire::kGenerationMask) {}

ClientHalf::~ClientHalf() {
  calls_.for_each([this](std::uint32_t, ClientCall& call) {
    if (call.bulk != nullptr) end_bulk(call, false);
  });
}

void ClientHalf::move_waiting() {
  if (!revoke_backlog_.empty()) {
    for (const std::uint32_t slot : std::exchange(revoke_backlog_, {})) issue_revokes(slot);
  }
  if (!deferred_.empty() || !deferred_sinks_.empty()) start_deferred();
}

void ClientHalf::note_unsent(std::uint32_t word) {
  ClientCall& call = calls_[wire::call_slot(word)];
  if (call.generation == wire::call_generation(word)) call.unsent = true;
}

void ClientHalf::end_unexposed() {
  deferred_sinks_.clear();
  for (const std::uint32_t slot : std::exchange(deferred_, {})) {
    calls_[slot].unsent = true;
    shared_.slots.release(calls_[slot].bulk->slot);
  }
  calls_.for_each([this](std::uint32_t slot, ClientCall& call) {
    if (call.state != ClientState::active || call.bulk != nullptr) return;
    shared_.events.emit(
        failed_event(slot, Reason::session_lost, call.unsent ? Processed::no : Processed::maybe));
    call.state = ClientState::idle;
    count_out(call);
  });
}

void ClientHalf::end_all() {
  calls_.for_each([this](std::uint32_t slot, ClientCall& call) {
    switch (call.state) {
      case ClientState::idle:
      case ClientState::given_up:
        break;
      case ClientState::active:
        call.bulk->result =
            failed_event(slot, Reason::session_lost, call.unsent ? Processed::no : Processed::maybe);
        settle(slot, false);
        break;
      case ClientState::leaving:
        call.bulk->result = failed_event(slot, call.reason, Processed::maybe);
        settle(slot, false);
        break;
      case ClientState::revoking:  // the answer was here already; the flush has made the memory safe
        settle(slot, false);
        break;
    }
  });
}

}  // namespace rdma_rpc::session
