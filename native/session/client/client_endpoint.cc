// This part of the client endpoint does its work in each event-loop iteration, and ends the session. See
// client_endpoint.h.
#include "session/client/client_endpoint.h"

#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::Processed;
using boundary::Reason;

ClientEndpoint::ClientEndpoint(Link& link)
    : Endpoint(link),
      calls_(link.options().call_slots, shared_.counters_start & wire::kGenerationMask),
      memory_(link),
      reply_buffers_(link, calls_, memory_),
      revocation_(link, calls_, memory_, count_),
      requests_(link, calls_, memory_, reply_buffers_, revocation_) {}

ClientEndpoint::~ClientEndpoint() {
  calls_.for_each([this](std::uint32_t, ClientCall& call) {
    if (call.bulk != nullptr) revocation_.end_bulk(call, false);
  });
}

bool ClientEndpoint::on_control(const wire::Frame& frame) {
  if (frame.header.type != static_cast<std::uint8_t>(wire::FrameType::reply_buffer_request)) return false;
  reply_buffers_.on_request(frame.header);
  return true;
}

void ClientEndpoint::on_done(SendQueue::Done done, bool /*memory_gone*/) {
  if (done.then == Then::cancel_arrived) revocation_.on_cancel_arrived(done.ref);
  if (done.then == Then::invalidated) revocation_.on_invalidated(done.ref);
}

SetBits ClientEndpoint::due() const {
  return due_if(waits_for_room(), kTouched) | due_if(revocation_.has_timeouts(), kTimed) |
         due_if(revocation_.has_pending_release(), kHolding);
}

void ClientEndpoint::move_waiting() {
  if (revocation_.waits()) revocation_.move_waiting();
  if (requests_.waits() || reply_buffers_.waits()) requests_.start_deferred();
}

void ClientEndpoint::note_unsent(std::uint32_t word) {
  ClientCall& call = calls_[wire::call_slot(word)];
  if (call.generation == wire::call_generation(word)) call.unsent = true;
}

void ClientEndpoint::end_untouched() {
  reply_buffers_.clear();
  requests_.end_unsent();
  calls_.for_each([this](std::uint32_t slot, ClientCall& call) {
    if (call.state != ClientState::active || call.bulk != nullptr) return;
    shared_.events.emit(
        Event::failed(number_, slot, Reason::session_lost, call.unsent ? Processed::no : Processed::maybe));
    call.state = ClientState::idle;
    count_.ended(call.is_call());
  });
}

void ClientEndpoint::end_all() {
  calls_.for_each([this](std::uint32_t slot, ClientCall& call) {
    switch (call.state) {
      case ClientState::idle:
      case ClientState::cancelled:
        break;
      case ClientState::active:
        call.bulk->result = Event::failed(number_, slot, Reason::session_lost,
                                          call.unsent ? Processed::no : Processed::maybe);
        revocation_.settle(slot, false);
        break;
      case ClientState::leaving:
        call.bulk->result = Event::failed(number_, slot, call.reason, Processed::maybe);
        revocation_.settle(slot, false);
        break;
      case ClientState::revoking:  // the response had arrived, and the flush has made the memory safe
        revocation_.settle(slot, false);
        break;
    }
  });
}

}  // namespace rdma_rpc::session
