// Life of a session, dispatch of completions and frames, and what both call halves share. See session.h.
#include "session/session.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
using boundary::Reason;
using boundary::Sent;
namespace ev = boundary::ev;

namespace {
constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63;
constexpr std::uint64_t wr_id_base(std::uint32_t number) { return std::uint64_t{number} << 32; }
SessionOptions with_defaults(SessionOptions options) {
  if (options.call_slots == 0) options.call_slots = options.inflight_max;
  return options;
}
}  // namespace

Session::Session(Shared& shared, std::uint32_t number, const SessionOptions& options)
    : shared_(shared),
      number_(number),
      options_(with_defaults(options)),
      capabilities_(shared.device.capabilities()),
      owner_(shared.arena.add_owner()),
      receive_depth_(options.inflight_max + kControlReceives),
      receive_stride_(SendSlots::stride_for(shared.slot_bytes)),
      client_calls_(options_.call_slots),
      server_calls_(options_.call_slots),
      transfers_(options_.call_slots) {
  for (ClientCall& call : client_calls_) call.generation = shared.counters_start & wire::kGenerationMask;
  consumed_.reserve(receive_depth_);
  for (std::uint32_t i = 0; i < kParkingSlots; ++i) parking_.push_back(receive_depth_ + i);
  repost_.resize(receive_depth_);
}

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
  if (std::string unfit = why_unfit(can); !unfit.empty()) return refuse(unfit);
  std::unique_ptr<Session> session(new Session(shared, number, options));
  const std::size_t slab_bytes =
      std::size_t{session->receive_depth_ + kParkingSlots} * session->receive_stride_;
  session->receive_memory_ = shared.device.alloc_memory(slab_bytes, "receive slab");
  if (session->receive_memory_ == nullptr) {
    return refuse("no memory for " + std::to_string(slab_bytes) +
                  " bytes of receives (by inflightMax): " + shared.device.refusal());
  }
  // Lengths and texts are looked at more than once, so all of it is read from memory that nobody else
  // changes.
  if (can.peers_keep_access) session->copies_.reset(new std::byte[session->receive_memory_->size()]);
  std::string why;
  session->receive_region_ = shared.device.reg_mr(
      session->receive_memory_->data(), session->receive_memory_->size(), fabric::access_local_write, &why);
  if (session->receive_region_ == nullptr) return refuse(why);
  if (!session->open_staging(&why)) return refuse(why);
  session->qp_ = shared.device.create_qp(shared.cq, {depth, session->receive_depth_, options.client}, &why);
  if (session->qp_ == nullptr) return refuse(why);
  session->send_ = std::make_unique<SendQueue>(*session->qp_, can, shared.slots, shared.stats,
                                               wr_id_base(number), session->options_.call_slots, depth,
                                               session->receive_depth_, shared.counters_start);
  for (std::uint32_t i = 0; i < session->receive_depth_; ++i) session->consumed_.push_back(i);
  session->finish_turn();
  return session;
}

Session::~Session() {
  for (ClientCall& call : client_calls_) {
    if (call.bulk != nullptr) end_client_bulk(call, false);
  }
  for (ServerCall& call : server_calls_) end_server_call(call);
  for (auto& response : finishing_) {
    if (response != nullptr) end_response(*response);
  }
  shared_.arena.remove_owner(owner_);
}

// --- the end of a session

void Session::protocol_error(const char* reason) {
  ++shared_.stats.protocol_errors;
  fail(std::string("protocol error by the peer: ") + reason);
}

void Session::fail(const std::string& reason) {
  if (state_ == SessionState::draining || state_ == SessionState::down) return;
  leave_connecting(SessionState::draining);
  error_ = reason;
  qp_->to_error();
  forget_waiters();
  deferred_sinks_.clear();
  send_->drain([this](std::uint32_t call) {
    ClientCall& entry = client_calls_[wire::call_slot(call)];
    if (entry.generation == wire::call_generation(call)) entry.unsent = true;
  });
  for (const std::uint32_t slot : std::exchange(deferred_, {})) {
    client_calls_[slot].unsent = true;
    shared_.slots.give_back(client_calls_[slot].bulk->slot);
  }
  // Calls without exposed memory can end now; the others when the flush has been polled (maybe_down).
  for (std::uint32_t slot = 0; slot < options_.call_slots; ++slot) {
    ClientCall& call = client_calls_[slot];
    if (call.state == ClientState::active && call.bulk == nullptr) {
      shared_.events.emit(failed_event(slot, Reason::session_lost, call.unsent ? Sent::no : Sent::maybe));
      call.state = ClientState::idle;
      --calls_in_flight_;
    }
    ServerCall& server = server_calls_[slot];
    if (server.state == ServerState::running) {
      Event event;
      event.word[ev::kind] = static_cast<std::int32_t>(EvKind::cancelled);
      event.word[ev::session] = static_cast<std::int32_t>(number_);
      event.word[ev::call] = static_cast<std::int32_t>(wire::call_word(slot, server.generation));
      event.word[ev::method] = 1;
      shared_.events.emit(event);
    }
    // Nothing of the response is posted yet: its slot and memory are free now, JS will not be asked again.
    if (server.state == ServerState::running || server.state == ServerState::asking) end_server_call(server);
  }
  maybe_down();
}

void Session::maybe_down() {
  if (state_ != SessionState::draining || !drained_ || receives_posted_ != 0) return;
  state_ = SessionState::down;
  for (std::uint32_t slot = 0; slot < options_.call_slots; ++slot) {
    ClientCall& call = client_calls_[slot];
    switch (call.state) {
      case ClientState::idle:
      case ClientState::given_up:
        break;
      case ClientState::active:
        call.bulk->result = failed_event(slot, Reason::session_lost, call.unsent ? Sent::no : Sent::maybe);
        settle(slot, false);
        break;
      case ClientState::leaving:
        call.bulk->result = failed_event(slot, call.reason, Sent::maybe);
        settle(slot, false);
        break;
      case ClientState::revoking:  // the answer was here already; the flush has made the memory safe
        settle(slot, false);
        break;
    }
    end_server_call(server_calls_[slot]);
  }
  for (auto& response : finishing_) {
    if (response != nullptr) end_response(*response);
    response.reset();
  }
  Event event;
  event.word[ev::kind] = static_cast<std::int32_t>(EvKind::session_down);
  event.word[ev::session] = static_cast<std::int32_t>(number_);
  shared_.events.emit(event);
}

// --- completions

void Session::on_send(const fabric::Wc& wc) {
  check_connected();
  const std::uint32_t sequence = static_cast<std::uint32_t>(wc.wr_id);
  if (wc.status != fabric::WcStatus::success && state_ != SessionState::draining) {
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
      on_bulk_sent(done.ref);
      break;
    case Then::chunk_read:
      on_chunk_read(done.ref, vanished);
      break;
    case Then::cancel_arrived:
      on_cancel_arrived(done.ref);
      break;
    case Then::revoked:
      on_revoked(done.ref);
      break;
    default:
      break;
  }
}

void Session::on_receive(const fabric::Wc& wc) {
  check_connected();
  --receives_posted_;
  ++received_;
  const std::uint32_t slot = static_cast<std::uint32_t>(wc.wr_id);
  if (wc.status != fabric::WcStatus::success) {
    if (state_ != SessionState::draining) fail(why_failed("receive failed: ", wc.status));
    maybe_down();
    return;
  }
  if (state_ == SessionState::draining) {
    maybe_down();
    return;
  }
  on_frame(slot, wc.bytes, wc.invalidated_rkey);
  if (state_ == SessionState::draining) maybe_down();
}

void Session::on_frame(std::uint32_t receive_slot, std::uint32_t bytes, std::uint32_t invalidated_rkey) {
  const std::size_t at = std::size_t{receive_slot} * receive_stride_;
  if (copies_ != nullptr) std::memcpy(copies_.get() + at, receive_memory_->data() + at, bytes);
  const std::byte* data = receive_slab() + at;
  wire::Frame frame;
  if (const char* why = wire::parse(data, bytes, frame)) return protocol_error(why);
  const wire::Header& header = frame.header;
  if (!std::exchange(heard_, true)) let_send();
  if (!send_->count_received()) return protocol_error("frame beyond the credits");
  if (header.credits != 0) stalled_since_ns_ = 0;
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
  switch (type) {
    case wire::FrameType::request:
      if (options_.client) return protocol_error("request from a server");
      return on_request(frame, data, receive_slot);
    case wire::FrameType::response:
      if (!options_.client) return protocol_error("response from a client");
      return on_response(frame, receive_slot, invalidated_rkey);
    case wire::FrameType::cancel:
      if (options_.client) return protocol_error("cancel from a server");
      on_cancel(header);
      break;
    case wire::FrameType::sink_request:
      if (!options_.client) return protocol_error("sink request from a client");
      on_sink_request(header);
      break;
    case wire::FrameType::sink:
      if (options_.client) return protocol_error("sink from a server");
      on_sink(frame);
      break;
    case wire::FrameType::credit:
      break;
  }
  recycle(receive_slot);
}

void Session::post_now() {
  if (!send_->is_open()) return;
  unposted_ = send_->post();
  if (!send_->waiting()) {
    stalled_since_ns_ = 0;
  } else if (stalled_since_ns_ == 0) {
    stalled_since_ns_ = std::max<std::uint64_t>(shared_.awake_ns, 1);
  }
}

bool Session::finish_turn() {
  if (state_ != SessionState::init && !open()) return false;
  // What is ready goes first: the peer works on it while receives are posted here.
  send_->ring();
  if (!consumed_.empty()) {
    std::size_t count = 0;
    for (const std::uint32_t slot : consumed_) {
      const auto addr =
          reinterpret_cast<std::uint64_t>(receive_memory_->data()) + std::uint64_t{slot} * receive_stride_;
      repost_[count++] = {kReceiveBit | wr_id_base(number_) | slot,
                          {addr, receive_stride_, receive_region_->lkey()}};
    }
    const std::size_t taken = qp_->post_recv({repost_.data(), count});
    receives_posted_ += static_cast<std::uint32_t>(taken);
    if (taken != count) {
      fail("the queue pair took " + std::to_string(taken) + " of " + std::to_string(count) + " receives");
      return false;
    }
    // The first posting is what the peer's credits begin with; each later one is news to it.
    if (state_ != SessionState::init) send_->owe_credits(static_cast<std::uint32_t>(count));
    consumed_.clear();
  }
  if (!send_->is_open()) return false;
  if (!revoke_backlog_.empty()) {
    for (const std::uint32_t slot : std::exchange(revoke_backlog_, {})) issue_revokes(slot);
  }
  if (!deferred_.empty() || !deferred_sinks_.empty()) start_deferred();
  const bool moving = move_transfers();
  post_now();
  return moving || unposted_;
}

// --- frames out

void Session::control(wire::FrameType type, std::uint32_t call, std::uint32_t method, const wire::Sink* sink,
                      SendQueue::Done done) {
  std::uint8_t flags = sink != nullptr ? wire::has_sink : 0;
  if (sink != nullptr && shared_.exposure != Exposure::window) flags |= wire::lasting;
  const wire::Header header{static_cast<std::uint8_t>(type), flags, 0, call, method, 0};
  if (!send_->send_control(header, sink, done)) {
    protocol_error("control frames pile up: the peer returns no credits");
  }
}

void Session::send_message(std::uint32_t slot, wire::Header header, const wire::Sink* sink,
                           std::uint32_t metadata_bytes, std::uint32_t payload_bytes,
                           std::uint32_t invalidate_rkey, SendQueue::Done done) {
  std::byte* start = shared_.slots.payload(slot);
  std::uint32_t bytes = payload_bytes;
  const auto prepend = [&](const void* extension, std::uint32_t extension_bytes) {
    start -= extension_bytes;
    bytes += extension_bytes;
    std::memcpy(start, extension, extension_bytes);
  };
  if (metadata_bytes != 0) {
    header.flags |= wire::has_metadata;
    const wire::MetadataLength length{metadata_bytes, 0};
    prepend(&length, sizeof length);
  }
  if (sink != nullptr) {
    header.flags |= wire::has_sink;
    prepend(sink, sizeof *sink);
  }
  prepend(&header, sizeof header);
  if (!send_->send({slot, start, bytes, invalidate_rkey, done})) {
    protocol_error("frames pile up: the peer returns no credits");
  }
}

void Session::emit_sent(std::uint32_t& token) {
  if (token == 0) return;
  Event event;
  event.word[ev::kind] = static_cast<std::int32_t>(EvKind::sent);
  event.word[ev::session] = static_cast<std::int32_t>(number_);
  event.word[ev::call] = static_cast<std::int32_t>(token);
  shared_.events.emit(event);
  token = 0;
}

void Session::submit(const std::int32_t* words) {
  const auto op = static_cast<boundary::SubOp>(words[boundary::sub::op]);
  shared_.slots.hold(static_cast<std::uint32_t>(words[boundary::sub::slot]), place());
  if (op == boundary::SubOp::response) return submit_response(words);
  submit_request(words, op == boundary::SubOp::part);
}

std::int32_t Session::submit_bulk(BulkSubmission submission) {
  shared_.slots.hold(submission.slot, place());
  const std::int32_t token = submission.op == boundary::SubOp::response ? submit_bulk_response(submission)
                                                                        : submit_bulk_request(submission);
  if (token < 0) shared_.slots.let_go(submission.slot);
  return token;
}

}  // namespace rdma_rpc::session
