// Opens and ends a session, and passes submissions, completions and frames to its endpoint. See session.h.
#include "session/session.h"

#include <cstring>
#include <utility>

#include "session/client/client_endpoint.h"
#include "session/server/server_endpoint.h"

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
  const fabric::Capabilities& can = shared.device->capabilities();
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
  const std::string why =
      options.client ? session->make_endpoint<ClientEndpoint>() : session->make_endpoint<ServerEndpoint>();
  if (!why.empty()) return refuse(why);
  session->finish_turn();
  return session;
}

/// Returns "", or why the device refuses.
template <class Made>
std::string Session::make_endpoint() {
  std::string why = open_resources(Made::queue_limits(options_.call_slots));
  if (!why.empty()) return why;
  endpoint_ = std::make_unique<Made>(*this);
  endpoint_bytes_ = sizeof(Made);
  return "";
}

// --- the end of a session

void Session::fail(const std::string& reason) {
  if (state_ == SessionState::draining || state_ == SessionState::down) return;
  leave_connecting(SessionState::draining);
  touch();
  error_ = reason;
  recorder_.ended(reason);
  qp_->to_error();
  shared_.memory_waiters.forget(number_);
  send_->drain([this](std::uint32_t call) { endpoint_->note_unsent(call); });
  // Calls with exposed memory or posted work requests end when the flush has been polled: maybe_down().
  endpoint_->end_untouched();
  maybe_down();
}

void Session::maybe_down() {
  if (state_ != SessionState::draining || !drained_ || receives_.has_posted()) return;
  state_ = SessionState::down;
  recorder_.state(static_cast<std::uint8_t>(state_));
  endpoint_->end_all();
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
    fail(why_failed("send failed: ", wc));
  }
  send_->retire(sequence, [&](SendQueue::Done done) { on_done(done, wc.memory_gone); });
}

/// `memory_gone` belongs to the work request that has completed. The earlier work requests that are retired
/// with it are not READs, because every READ is signaled. Therefore `memory_gone` does not concern them.
void Session::on_done(SendQueue::Done done, bool memory_gone) {
  if (done.then == Then::drained) {
    drained_ = true;
    maybe_down();
    return;
  }
  if (state_ == SessionState::draining) return;  // flushed, not executed: maybe_down() cleans up
  endpoint_->on_done(done, memory_gone);
}

// --- prefetching

void Session::expect(int step, std::uint32_t slot) const {
  if (step == 0) return fabric::prefetch(this, sizeof *this);
  if (step == 1) {
    // The prefetch is not a virtual call, because a virtual call would read the endpoint before it is in the
    // cache.
    fabric::prefetch(endpoint_.get(), endpoint_bytes_);
    return expect_link();
  }
  endpoint_->expect_call(step, slot);
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
    receive_failed(wc);
    return;
  }
  const std::uint32_t slot = static_cast<std::uint32_t>(wc.wr_id);
  receives_.came(slot, wc.receives);
  ++received_;
  if (wc.status != fabric::WcStatus::success) {
    receive_failed(wc);
    maybe_down();
    return;
  }
  if (state_ == SessionState::draining) {
    maybe_down();
    return;
  }
  // The frame is counted before anything is copied. When receives are shared, only the credits limit how much
  // memory of this side a peer occupies.
  const auto copy = send_->count_received() ? receives_.readable(slot, wc) : std::nullopt;
  if (!copy) return protocol_error("frame beyond the credits");
  on_frame(*copy, wc.bytes, wc.invalidated_rkey);
  if (state_ == SessionState::draining) maybe_down();
}

/// Decrypts a frame in place, in our own copy. Returns false when the peer has not sealed it. The frame of a
/// bulk message ends with the message's number, which is moved to `bulk_number`.
bool Session::unseal(std::byte* frame, std::uint32_t& bytes, std::uint64_t& bulk_number) {
  const std::optional<std::uint32_t> plain = sealing_->open_frame(frame, bytes);
  if (!plain) return false;
  bytes = *plain;
  wire::Header header;
  if (bytes < sizeof header) return true;
  std::memcpy(&header, frame, sizeof header);
  const auto type = static_cast<wire::FrameType>(header.type);
  int elsewhere = 0;
  if (type == wire::FrameType::request) elsewhere = wire::has_gather_list;
  if (type == wire::FrameType::response) elsewhere = wire::written;
  if ((header.flags & elsewhere) == 0 || bytes < sizeof header + kBulkNumberBytes) return true;
  bytes -= kBulkNumberBytes;
  std::memcpy(&bulk_number, frame + bytes, kBulkNumberBytes);
  return true;
}

/// Returns null when this frame can be the last one of the message whose segments have arrived, otherwise an
/// error text.
const char* Session::end_of_segments(const wire::Frame& frame) const {
  const wire::Header& header = frame.header;
  const auto type = static_cast<wire::FrameType>(header.type);
  const bool ends = type == wire::FrameType::request || type == wire::FrameType::response;
  if (!ends || header.call != segments_.call()) return "segments without the end of their message";
  if ((header.flags & (wire::has_gather_list | wire::written)) != 0)
    return "segments before a frame whose message is not in it";
  if (type == wire::FrameType::response && header.method != 0) return "segments of an error";
  const std::uint32_t others = frame.metadata_bytes + frame.message_bytes;
  return others > kSegmentedBytesMax - segments_.bytes() ? Segments::kTooLong : nullptr;
}

namespace {
const char* from_wrong_side(wire::FrameType type) {
  switch (type) {
    case wire::FrameType::request:
      return "request from a server";
    case wire::FrameType::response:
      return "response from a client";
    case wire::FrameType::cancel:
      return "cancel from a server";
    case wire::FrameType::reply_buffer_request:
      return "reply buffer request from a client";
    default:
      return "reply buffer from a server";
  }
}
}  // namespace

void Session::on_frame(ReceiveSlot receive_slot, std::uint32_t bytes, std::uint32_t invalidated_rkey) {
  std::byte* data = receives_.at(receive_slot);
  received_bytes_ += bytes;
  shared_.stats.received_bytes += bytes;
  std::uint64_t bulk_number = 0;
  if (sealing_ != nullptr && !unseal(data, bytes, bulk_number))
    return protocol_error("a frame that the peer has not sealed, or that is out of order");
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
    case wire::FrameType::response:
      if (!endpoint_->on_message(frame, data, receive_slot, invalidated_rkey))
        return protocol_error(from_wrong_side(type));
      return segments_.clear([this](ReceiveSlot part) { recycle(part); });
    case wire::FrameType::cancel:
    case wire::FrameType::reply_buffer_request:
    case wire::FrameType::reply_buffer:
      if (!endpoint_->on_control(frame)) return protocol_error(from_wrong_side(type));
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
  // Prepared frames are sent first, so that the peer works on them while receives are posted here.
  send_->ring();
  if (!post_receives() || !send_->is_open()) return false;
  endpoint_->finish_turn();
  post_now();
  return unposted_;
}

/// The next iteration posts two things: receives that were read while bulk data moved, and work requests that
/// the queue pair has not accepted yet. Requests and invalidations may wait for resources that no completion
/// of this session frees.
SetBits Session::due() const {
  const SetBits due = endpoint_->due() | due_if(has_unposted(), kTouched) |
                      due_if(stalled_since_ns_ != 0, kTimed) |
                      due_if(state_ == SessionState::connecting, kConnecting);
  return is_open() ? due : due & ~kTouched;
}

Moved Session::move(Bulk kind, std::int64_t& credit) {
  const Moved moved = endpoint_->move(kind, credit);
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
  endpoint_->check_timeouts();
}

void Session::check_held() {
  if (!is_open()) return;
  touch();
  endpoint_->check_held();
}

bool Session::deliver(const Shared::Fetched& fetched, bool queue_was_empty) {
  touch();
  return !is_open() || endpoint_->deliver(fetched, queue_was_empty);
}

// --- arena memory

bool Session::retry_memory(std::uint32_t call) {
  if (!is_open()) return true;
  touch();
  return endpoint_->retry_memory(call);
}

void Session::refuse_memory(std::uint32_t call) {
  touch();
  endpoint_->refuse_memory(call);
}

void Session::reclaim_memory() {
  touch();
  endpoint_->reclaim_memory();
}

// --- from JS (a submission that only the other kind of endpoint may make fails as for a closed session)

/// Returns whether this endpoint may make such a submission: a server submits responses, and a client
/// everything else.
bool Session::is_own(boundary::SubOp op) const {
  return (op == boundary::SubOp::response) != options_.client;
}

void Session::submit(const std::int32_t* words) {
  touch();
  const auto op = static_cast<boundary::SubOp>(words[sub::op]);
  const auto slot = static_cast<std::uint32_t>(words[sub::slot]);
  shared_.slots.hold(slot, table_index());
  if (is_own(op)) return endpoint_->submit(words);
  shared_.slots.release(slot);
  if (op == boundary::SubOp::response) return;
  const auto call = static_cast<std::uint32_t>(words[sub::call]);
  shared_.events.emit(Event::failed(number_, call, Reason::session_lost, Processed::no));
}

std::int32_t Session::submit_bulk(BulkSubmission submission) {
  touch();
  shared_.slots.hold(submission.slot, table_index());
  std::int32_t token = -static_cast<std::int32_t>(Reason::session_lost);
  if (is_own(submission.op)) {
    token = endpoint_->submit_bulk(submission);
  } else if (submission.op == boundary::SubOp::response) {
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
  if (call && !endpoint_->answers_in_segments(*call)) return -1;
  return shared_.slots.take_long();
}

void Session::cancel(std::uint32_t slot, Reason reason) {
  touch();
  endpoint_->cancel(slot, reason);
}

void Session::want(std::uint32_t call) {
  if (!is_open() || wire::call_slot(call) >= options_.call_slots) return;
  touch();
  endpoint_->want(call);
}

bool Session::defer_handler(std::uint32_t call, bool deferred) {
  if (!is_open() || wire::call_slot(call) >= options_.call_slots) return false;
  return endpoint_->defer_handler(call, deferred);
}

}  // namespace rdma_rpc::session
