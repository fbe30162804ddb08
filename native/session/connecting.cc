// Connects the queue pair of a session, from INIT to RTS. A fabric may need the network to connect, so
// connecting may take several iterations of the event loop. This file also handles failed receives. See
// session.h.
#include "session/session.h"

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
namespace ev = boundary::ev;

std::string Session::connect(std::span<const std::byte> peer_address, const fabric::FirstWords* words) {
  if (state_ != SessionState::init) return "session is not new";
  if (words != nullptr) qp_->set_first_words(*words);
  std::string why = qp_->connect(peer_address);
  if (!why.empty()) {
    fail("cannot connect: " + why);
    return why;
  }
  state_ = SessionState::connecting;
  recorder_.state(static_cast<std::uint8_t>(state_));
  ++shared_.connecting;
  shared_.sets.connecting.add(sets_, number_);
  check_connected();
  return {};
}

void Session::check_connected() {
  if (state_ != SessionState::connecting) return;
  const fabric::QpState now = qp_->state();
  if (now == fabric::QpState::err) {
    const std::string why = qp_->error();
    return fail("cannot connect: " + (why.empty() ? "the connection broke at once" : why));
  }
  if (now != fabric::QpState::rts) return;
  leave_connecting(SessionState::ready);
  let_send();
  shared_.events.emit(Event::of(EvKind::session_up, number_));
}

void Session::receive_failed(const fabric::Wc& wc) {
  if (state_ == SessionState::draining) return;
  ended_there_ = true;
  fail(why_failed("receive failed: ", wc));
}

void Session::leave_connecting(SessionState next) {
  if (state_ == SessionState::connecting) --shared_.connecting;
  state_ = next;
  recorder_.state(static_cast<std::uint8_t>(next));
}

/// Opens the send queue once this side may send. On some fabrics the active side must send the first message.
/// When the server is the active side, the client's first request waits for that message, and the server has
/// nothing to send. The server therefore sends an empty CREDIT frame.
void Session::let_send() {
  if (state_ != SessionState::ready) return;
  const bool waits_for_active = capabilities_.active_side_sends_first && !heard_;
  if (waits_for_active && !options_.is_active()) return touch();
  send_->open();
  if (waits_for_active && !options_.client) control(wire::FrameType::credit, 0, 0);
  touch();
}

std::string Session::why_unfit(const fabric::Capabilities& can, bool sealed) {
  const std::size_t inline_min =
      sizeof(wire::Header) + sizeof(wire::ReplyBuffer) + (sealed ? seal::kTagBytes : 0);
  if (can.max_inline < inline_min)
    return "it sends " + std::to_string(can.max_inline) + " bytes inline (max_inline_data), and " +
           std::to_string(inline_min) + " are needed";
  return "";
}

}  // namespace rdma_rpc::session
