// Life of a session, and which half gets what: submissions, completions, frames. See session.h.
#include "session/session.h"

#include <cstring>
#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
namespace ev = boundary::ev;
namespace sub = boundary::sub;

Session::Session(Shared& shared, std::uint32_t number, const SessionOptions& options)
    : Link(shared, number, options) {}

Session::~Session() = default;

std::unique_ptr<Session> Session::open(Shared& shared, std::uint32_t number, const SessionOptions& options,
                                       std::string* error) {
  const fabric::Capabilities& can = shared.device.capabilities();
  const auto refuse = [&](const std::string& why) {
    *error = "fabric " + can.name + ": " + why;
    return nullptr;
  };
  if (options.inflight_max == 0 || options.inflight_max > kCallSlotsMax) {
    return refuse("inflightMax must be 1 to " + std::to_string(kCallSlotsMax));
  }
  if (options.call_slots != 0 &&
      (options.call_slots < options.inflight_max || options.call_slots > kCallSlotsMax)) {
    return refuse("callSlots must be inflightMax (" + std::to_string(options.inflight_max) + ") to " +
                  std::to_string(kCallSlotsMax));
  }
  const std::uint32_t depth = SendQueue::depth_for(options.inflight_max, can.max_qp_wr);
  if (depth < kSendQueueDepthMin || can.max_qp_wr < options.inflight_max + kControlReceives) {
    return refuse("queues of " + std::to_string(can.max_qp_wr) +
                  " requests (max_qp_wr) are too short; at least " + std::to_string(kSendQueueDepthMin) +
                  " are needed, and inflightMax (" + std::to_string(options.inflight_max) + ") and " +
                  std::to_string(kControlReceives) + " more");
  }
  if (std::string unfit = why_unfit(can, options.seal.has_value()); !unfit.empty()) return refuse(unfit);
  std::unique_ptr<Session> session(new Session(shared, number, options));
  const std::uint32_t call_slots = session->options_.call_slots;
  const std::string why = session->open_resources(options.client ? ClientHalf::queue_limits(call_slots)
                                                                 : ServerHalf::queue_limits(call_slots));
  if (!why.empty()) return refuse(why);
  if (options.client) {
    session->client_ = std::make_unique<ClientHalf>(*session);
  } else {
    session->server_ = std::make_unique<ServerHalf>(*session);
  }
  session->finish_turn();
  return session;
}

// --- the end of a session

void Session::fail(const std::string& reason) {
  if (state_ == SessionState::draining || state_ == SessionState::down) return;
  leave_connecting(SessionState::draining);
  touch();
  error_ = reason;
  recorder_.ended(reason);
  qp_->to_error();
  forget_waiters();
  // (A server sends no requests.)
  send_->drain([this](std::uint32_t call) { client_->note_unsent(call); });
  // What is exposed, or being sent, ends when the flush has been polled: maybe_down().
  if (client_ != nullptr) client_->end_unexposed();
  if (server_ != nullptr) server_->end_unposted();
  maybe_down();
}

void Session::maybe_down() {
  if (state_ != SessionState::draining || !drained_ || receives_.has_posted()) return;
  state_ = SessionState::down;
  recorder_.state(static_cast<std::uint8_t>(state_));
  if (client_ != nullptr) client_->end_all();
  if (server_ != nullptr) server_->end_all();
  shared_.events.emit(Event::of(EvKind::session_down, number_));
}

// --- completions

void Session::on_send(const fabric::Wc& wc) {
  touch();
  if (state_ == SessionState::connecting) check_connected();
  const std::uint32_t sequence = static_cast<std::uint32_t>(wc.wr_id);
  recorder_.completion(static_cast<std::uint32_t>(wc.status), sequence);
  if (wc.status != fabric::WcStatus::success && state_ != SessionState::draining) {
    ended_there_ = true;
    fail(why_failed("send failed: ", wc.status));
  }
  send_->retire(sequence, [&](SendQueue::Done done) { on_done(done, wc.vanished); });
}

/// `vanished` is of the request that has completed; those before it are of other kinds, since each READ
/// completes for itself.
void Session::on_done(SendQueue::Done done, bool vanished) {
  if (done.then == Then::drained) {
    drained_ = true;
    maybe_down();
    return;
  }
  if (state_ == SessionState::draining) return;  // flushed, not done: maybe_down() cleans up
  switch (done.then) {
    case Then::bulk_sent:
      server_->on_bulk_sent(done.ref);
      break;
    case Then::chunk_read:
      server_->on_chunk_read(ReadRef::of(done.ref), vanished);
      break;
    case Then::cancel_arrived:
      client_->on_cancel_arrived(done.ref);
      break;
    case Then::revoked:
      client_->on_revoked(done.ref);
      break;
    default:
      break;
  }
}

// --- what is about to happen

void Session::expect(int step, std::uint32_t slot) const {
  if (step == 0) return fabric::prefetch(this, sizeof *this);
  const void* half = client_ != nullptr ? static_cast<const void*>(client_.get()) : server_.get();
  const std::size_t half_bytes = client_ != nullptr ? sizeof *client_ : sizeof *server_;
  if (step == 1) {
    fabric::prefetch(half, half_bytes);
    return expect_link();
  }
  const auto of_calls = [&](const auto& calls) { step == 2 ? calls.expect_piece(slot) : calls.expect(slot); };
  client_ != nullptr ? of_calls(client_->calls()) : of_calls(server_->calls());
  if (step == 2) send_->expect_post();
}

void Session::expect_receive(int step, const fabric::Wc& wc) const {
  wire::Header header{};
  if (wc.apart != nullptr && wc.bytes >= sizeof header) std::memcpy(&header, wc.apart, sizeof header);
  if (step == 1) receives_.expect_lists(wc);
  if (step == 2) receives_.expect_copy(wc);
  expect(step, wire::call_slot(header.call));
}

void Session::on_receive(const fabric::Wc& wc) {
  touch();
  if (state_ == SessionState::connecting) check_connected();
  if (wc.wr_id == fabric::kNoReceive) {
    receive_failed(wc.status);
    return;
  }
  const std::uint32_t slot = static_cast<std::uint32_t>(wc.wr_id);
  receives_.came(slot, wc.receives);
  ++received_;
  if (wc.status != fabric::WcStatus::success) {
    receive_failed(wc.status);
    maybe_down();
    return;
  }
  if (state_ == SessionState::draining) {
    maybe_down();
    return;
  }
  // Before anything is copied: where receives are shared only credits bound what a peer has here.
  const auto copy = send_->count_received() ? receives_.readable(slot, wc) : std::nullopt;
  if (!copy) return protocol_error("frame beyond the credits");
  on_frame(*copy, wc.bytes, wc.invalidated_rkey);
  if (state_ == SessionState::draining) maybe_down();
}

/// In the copy that is ours. What stands behind a frame whose message is elsewhere is taken off it.
bool Session::unseal(std::byte* frame, std::uint32_t& bytes, std::uint64_t& bulk_number) {
  const std::optional<std::uint32_t> plain = sealing_->open_frame(frame, bytes);
  if (!plain) return false;
  bytes = *plain;
  wire::Header header;
  if (bytes < sizeof header) return true;
  std::memcpy(&header, frame, sizeof header);
  const auto type = static_cast<wire::FrameType>(header.type);
  int elsewhere = 0;
  if (type == wire::FrameType::request) elsewhere = wire::has_pieces;
  if (type == wire::FrameType::response) elsewhere = wire::written;
  if ((header.flags & elsewhere) == 0 || bytes < sizeof header + kBulkNumberBytes) return true;
  bytes -= kBulkNumberBytes;
  std::memcpy(&bulk_number, frame + bytes, kBulkNumberBytes);
  return true;
}

/// Null, or why this frame cannot end the message whose segments have come before it.
const char* Session::end_of_segments(const wire::Frame& frame) const {
  const wire::Header& header = frame.header;
  const auto type = static_cast<wire::FrameType>(header.type);
  const bool ends = type == wire::FrameType::request || type == wire::FrameType::response;
  if (!ends || header.call != segments_.call()) return "segments without the end of their message";
  if ((header.flags & (wire::has_pieces | wire::written)) != 0)
    return "segments of a message that is elsewhere";
  if (type == wire::FrameType::response && header.method != 0) return "segments of an error";
  const std::uint32_t others = frame.metadata_bytes + frame.message_bytes;
  return others > kSegmentedBytesMax - segments_.bytes() ? Segments::kTooLong : nullptr;
}

void Session::on_frame(ReceiveSlot receive_slot, std::uint32_t bytes, std::uint32_t invalidated_rkey) {
  std::byte* data = receives_.at(receive_slot);
  received_bytes_ += bytes;
  shared_.stats.received_bytes += bytes;
  std::uint64_t bulk_number = 0;
  if (sealing_ != nullptr && !unseal(data, bytes, bulk_number))
    return protocol_error("a frame that it has not sealed, or not now");
  wire::Frame frame;
  if (const char* why = wire::parse(data, bytes, frame)) return protocol_error(why);
  frame.bulk_number = bulk_number;
  const wire::Header& header = frame.header;
  recorder_.frame_in(header, bytes);
  if (!std::exchange(heard_, true)) let_send();
  if (header.credits != 0 && stalled_since_ns_ != 0) end_stall();
  if (header.credits != 0 && !send_->add_credits(header.credits)) {
    return protocol_error("more credits than receives");
  }
  const auto type = static_cast<wire::FrameType>(header.type);
  if (type != wire::FrameType::credit && wire::call_slot(header.call) >= options_.call_slots) {
    return protocol_error("call slot out of range");
  }
  if (invalidated_rkey != 0 && type != wire::FrameType::response) {
    return protocol_error("key invalidated by a frame that is no response");
  }
  if (type == wire::FrameType::segment) {
    const char* why =
        segments_.add(header.call, receive_slot, data + frame.message_offset, frame.message_bytes);
    return why == nullptr ? void() : protocol_error(why);
  }
  if (!segments_.empty()) {
    if (const char* why = end_of_segments(frame)) return protocol_error(why);
    frame.message_bytes += segments_.bytes();
  }
  switch (type) {
    case wire::FrameType::request:
      if (server_ == nullptr) return protocol_error("request from a server");
      server_->on_request(frame, data, receive_slot);
      return segments_.clear([this](ReceiveSlot part) { recycle(part); });
    case wire::FrameType::response:
      if (client_ == nullptr) return protocol_error("response from a client");
      client_->on_response(frame, receive_slot, invalidated_rkey);
      return segments_.clear([this](ReceiveSlot part) { recycle(part); });
    case wire::FrameType::cancel:
      if (server_ == nullptr) return protocol_error("cancel from a server");
      server_->on_cancel(header);
      break;
    case wire::FrameType::sink_request:
      if (client_ == nullptr) return protocol_error("sink request from a client");
      client_->on_sink_request(header);
      break;
    case wire::FrameType::sink:
      if (server_ == nullptr) return protocol_error("sink from a server");
      server_->on_sink(frame);
      break;
    case wire::FrameType::credit:
    case wire::FrameType::segment:
      break;
  }
  recycle(receive_slot);
}

// --- the turn

bool Session::finish_turn() {
  if (state_ != SessionState::init && !is_open()) return false;
  // What is ready goes first: the peer works on it while receives are posted here.
  send_->ring();
  if (!post_receives() || !send_->is_open()) return false;
  if (client_ != nullptr) client_->finish_turn();
  post_now();
  return unposted_;
}

/// Receives that were read while it moved are posted by the next turn, and what was prepared and not taken.
/// Requests and invalidations may wait for what no completion of this session brings.
SetBits Session::due() const {
  SetBits due = 0;
  const auto add = [&due](bool is, SetBits bit) { due = static_cast<SetBits>(due | (is ? bit : 0)); };
  add(is_open() && (has_unposted() || (client_ != nullptr && client_->waits_for_room())), kTouched);
  add(has_timeouts(), kTimed);
  add(holds(), kHolding);
  add(state_ == SessionState::connecting, kConnecting);
  return due;
}

Moved Session::move(Bulk kind, std::int64_t& credit) {
  const Moved moved = server_->move(kind, credit);
  if (is_open()) post_now();
  return moved;
}

void Session::check_timeouts() {
  if (!is_open()) return;
  touch();
  const std::uint64_t no_credit_ns = shared_.slots.free() == 0 ? kNoCreditShortNs : kNoCreditNs;
  if (stalled_since_ns_ != 0 && shared_.awake_ns >= stalled_since_ns_ + no_credit_ns) {
    return fail("the peer has returned no credits for " + std::to_string(no_credit_ns / 1'000'000'000) +
                " s");
  }
  if (client_ != nullptr) client_->check_timeouts();
}

void Session::check_held() {
  if (!is_open()) return;
  touch();
  client_ != nullptr ? client_->check_held() : server_->check_bulk();
}

bool Session::deliver(const Shared::Fetched& fetched, bool queue_was_empty) {
  touch();
  return !is_open() || server_->deliver(fetched, queue_was_empty);
}

// --- arena memory

bool Session::retry_memory(const Shared::Waiter& waiter) {
  if (!is_open()) return true;
  touch();
  return waiter.client ? client_->retry_memory(waiter.call) : server_->retry_memory(waiter.call);
}

bool Session::lacks_arena(const Shared::Waiter& waiter) {
  return waiter.client ? client_->lacks_arena(waiter.call) : server_->lacks_arena(waiter.call);
}

void Session::refuse_memory(const Shared::Waiter& waiter) {
  touch();
  waiter.client ? client_->refuse_memory(waiter.call) : server_->refuse_memory(waiter.call);
}

std::uint32_t Session::awaited_bytes(std::uint32_t slot) {
  return client_ == nullptr ? 0 : client_->awaited_bytes(slot);
}

// --- from JS: what is not for this half ends as what comes for a session that is gone

void Session::submit(const std::int32_t* words) {
  touch();
  const auto op = static_cast<boundary::SubOp>(words[sub::op]);
  const auto slot = static_cast<std::uint32_t>(words[sub::slot]);
  shared_.slots.hold(slot, place());
  if (op == boundary::SubOp::response) {
    if (server_ != nullptr) return server_->submit(words);
    return shared_.slots.release(slot);
  }
  if (client_ != nullptr) return client_->submit(words, op == boundary::SubOp::part);
  shared_.slots.release(slot);
  Event event = Event::of(EvKind::failed, number_, static_cast<std::uint32_t>(words[sub::call]));
  event.set(ev::reason, Reason::session_lost);
  event.set(ev::processed, Processed::no);
  shared_.events.emit(event);
}

std::int32_t Session::submit_bulk(BulkSubmission submission) {
  touch();
  shared_.slots.hold(submission.slot, place());
  std::int32_t token = -static_cast<std::int32_t>(Reason::session_lost);
  if (submission.op != boundary::SubOp::response) {
    if (client_ != nullptr) token = client_->submit_bulk(submission);
  } else if (server_ != nullptr) {
    token = server_->submit_bulk(submission);
  } else {
    std::uint32_t sent = shared_.take_token();
    token = static_cast<std::int32_t>(sent);
    shared_.slots.release(submission.slot);
    emit_sent(sent);
  }
  if (token < 0) shared_.slots.let_go(submission.slot);
  return token;
}

std::int32_t Session::take_long_slot(std::optional<std::uint32_t> call) {
  if (!is_open() || segmented_bytes_ == 0) return -1;
  if (call && (server_ == nullptr || server_->exposes(*call))) return -1;
  return shared_.slots.take_long();
}

void Session::cancel(std::uint32_t slot, Reason reason) {
  touch();
  if (client_ != nullptr) client_->cancel(slot, reason);
}

void Session::want(std::uint32_t call) {
  if (!is_open() || wire::call_slot(call) >= options_.call_slots) return;
  touch();
  client_ != nullptr ? client_->want(call) : server_->want(call);
}

}  // namespace rdma_rpc::session
