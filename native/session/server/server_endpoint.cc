// Creates and ends the server endpoint, and passes frames and completions to its parts. See
// server_endpoint.h.
#include "session/server/server_endpoint.h"

#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
namespace ev = boundary::ev;

ServerEndpoint::ServerEndpoint(Link& link)
    : Endpoint(link),
      calls_(link.options().call_slots),
      watch_(link),
      transfers_(link, calls_, watch_, *this) {}

ServerEndpoint::~ServerEndpoint() { end_all(); }

bool ServerEndpoint::on_message(const wire::Frame& frame, const std::byte* data, ReceiveSlot receive_slot,
                                std::uint32_t /*invalidated_rkey*/) {
  if (frame.header.type != static_cast<std::uint8_t>(wire::FrameType::request)) return false;
  on_request(frame, data, receive_slot);
  return true;
}

bool ServerEndpoint::on_control(const wire::Frame& frame) {
  switch (static_cast<wire::FrameType>(frame.header.type)) {
    case wire::FrameType::cancel:
      on_cancel(frame.header);
      return true;
    case wire::FrameType::reply_buffer:
      on_reply_buffer(frame);
      return true;
    default:
      return false;
  }
}

void ServerEndpoint::on_done(SendQueue::Done done, bool memory_gone) {
  if (done.then == Then::bulk_sent) on_bulk_sent(done.ref);
  if (done.then == Then::chunk_read) on_chunk_read(ReadRef::of(done.ref), memory_gone);
}

void ServerEndpoint::enter(ServerCall& call, ServerState state) {
  if (call.waits_for_peer()) watch_.ends(call);
  call.state = state;
  if (call.waits_for_peer()) watch_.begins(call);
}

void ServerEndpoint::end_untouched() {
  transfers_.leave();
  calls_.for_each([this](std::uint32_t slot, ServerCall& call) {
    if (call.state == ServerState::running) {
      Event event = Event::of(EvKind::cancelled, number_, wire::call_word(slot, call.generation));
      event.set(ev::status, 1);
      shared_.events.emit(event);
    }
    if (call.state == ServerState::running || call.state == ServerState::asking) end_call(slot, call);
  });
}

void ServerEndpoint::end_all() {
  // The flushed completions of all READs have been polled, or the queue pair is about to be destroyed.
  watch_.reads().clear();
  calls_.for_each([this](std::uint32_t slot, ServerCall& call) { end_call(slot, call); });
  finishing_.clear([this](ServerBulk& response) { end_response(response); });
}

}  // namespace rdma_rpc::session
