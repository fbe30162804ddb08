// Life of the server half. See server_half.h.
#include "session/server/server_half.h"

#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
namespace ev = boundary::ev;

ServerHalf::ServerHalf(Link& link)
    : Half(link), calls_(link.options().call_slots), reads_(link.shared().flow) {}

ServerHalf::~ServerHalf() { end_all(); }

void ServerHalf::end_unposted() {
  reading_.leave();
  writing_.leave();
  calls_.for_each([this](std::uint32_t slot, ServerCall& call) {
    if (call.state == ServerState::running) {
      Event event = Event::of(EvKind::cancelled, number_, wire::call_word(slot, call.generation));
      event.set(ev::status, 1);
      shared_.events.emit(event);
    }
    if (call.state == ServerState::running || call.state == ServerState::asking) end_call(slot, call);
  });
}

void ServerHalf::end_all() {
  // Their flush has been polled, or the queue pair is about to go.
  reads_.clear();
  calls_.for_each([this](std::uint32_t slot, ServerCall& call) { end_call(slot, call); });
  for (auto& response : finishing_) {
    if (response != nullptr) end_response(*response);
    response.reset();
  }
}

}  // namespace rdma_rpc::session
