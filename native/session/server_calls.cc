// The server half of a session: requests in (their bulk fetched by READ), responses out (their bulk placed by
// WRITE). The server exposes no memory; it moves the data, so it decides the pace. See session.h.
#include <algorithm>
#include <cstring>

#include "session/session.h"

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
using boundary::Reason;
namespace ev = boundary::ev;
namespace sub = boundary::sub;

namespace {
constexpr std::uint32_t kDeadlineExceeded = 4;
constexpr std::uint32_t kResourceExhausted = 8;
constexpr std::uint32_t kInternal = 13;
}  // namespace

// --- requests in

void Session::on_request(const wire::Frame& frame, const std::byte* data, std::uint32_t receive_slot) {
  const wire::Header& header = frame.header;
  const std::uint32_t slot = wire::call_slot(header.call);
  ServerCall& call = server_calls_[slot];
  if (call.state != ServerState::idle) return protocol_error("request on a call slot that is in use");
  call.generation = wire::call_generation(header.call);
  call.state = ServerState::running;
  call.has_sink = (header.flags & wire::has_sink) != 0;
  call.exposed = (header.flags & (wire::has_sink | wire::has_pieces)) != 0;
  call.cancelled = false;
  call.invalidates = capabilities_.windows && (header.flags & wire::lasting) == 0;
  call.invalidate_rkey = 0;
  if (call.has_sink) {
    call.sink = frame.sink;
    if (call.invalidates) call.invalidate_rkey = frame.sink.rkey;
  }
  ++shared_.stats.requests;

  Event event;
  event.word[ev::kind] = static_cast<std::int32_t>(EvKind::request);
  event.word[ev::session] = static_cast<std::int32_t>(number_);
  event.word[ev::call] = static_cast<std::int32_t>(header.call);
  event.word[ev::method] = static_cast<std::int32_t>(header.method);
  event.word[ev::timeout_us] = static_cast<std::int32_t>(header.timeout_us);
  event.word[ev::region] = boundary::kReceiveSlab;
  const std::uint32_t base = receive_slot * receive_stride_;
  event.word[ev::offset] = static_cast<std::int32_t>(base + frame.metadata_offset);
  event.word[ev::metadata_bytes] = static_cast<std::int32_t>(frame.metadata_bytes);
  event.word[ev::metadata_offset] = static_cast<std::int32_t>(base + frame.metadata_offset);
  event.word[ev::message_bytes] = static_cast<std::int32_t>(frame.message_bytes);
  event.word[ev::sent] = (header.flags & wire::part) != 0 ? 1 : 0;
  event.word[ev::reserved] = static_cast<std::int32_t>(receive_slot + 1);
  if ((header.flags & wire::has_pieces) == 0) {
    if (frame.message_bytes <= options_.max_message_bytes) return shared_.events.emit(event);
    recycle(receive_slot);
    return refuse_size(slot, frame.message_bytes);
  }
  call.state = ServerState::waiting;  // JS knows nothing of it yet
  call.timeout_us = header.timeout_us;
  call.arrived_ns = shared_.now_ns;
  call.bulk = std::make_unique<ServerBulk>();
  call.bulk->request = event;
  on_bulk_request(slot, frame, data, receive_slot);
}

void Session::on_bulk_request(std::uint32_t slot, const wire::Frame& frame, const std::byte* data,
                              std::uint32_t receive_slot) {
  ServerCall& call = server_calls_[slot];
  ServerBulk& bulk = *call.bulk;
  bulk.image = (frame.header.flags & wire::image) != 0;
  bulk.held_receive = static_cast<std::int32_t>(receive_slot);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < frame.piece_count; ++i) {
    // Read once more than the parser did: the peer may have changed them since, so the sum is checked on what
    // is used.
    bulk.remote.push_back(wire::piece_at(data, frame, i));
    if (bulk.remote.back().length == 0) return protocol_error("piece of no bytes");
    sum += bulk.remote.back().length;
  }
  if (sum != frame.total) return protocol_error("pieces do not add up to the total");
  const std::uint64_t extent =
      extent_of(bulk.remote, bulk.image, [](const wire::Piece& piece) { return piece.length; });
  bulk.total = static_cast<std::uint32_t>(std::min<std::uint64_t>(extent, UINT32_MAX));
  if (call.invalidates && call.invalidate_rkey == 0) call.invalidate_rkey = bulk.remote[0].rkey;
  const std::uint64_t allowed =
      bulk.image ? wire::image_bytes_max(options_.max_message_bytes) : options_.max_message_bytes;
  if (extent > std::min<std::uint64_t>(allowed, UINT32_MAX)) return refuse_size(slot, bulk.total);
  if (bulk.total > shared_.arena.largest()) {
    return refuse(slot, kResourceExhausted, false,
                  "request of " + std::to_string(bulk.total) + " bytes exceeds the server's arenaBytes (" +
                      std::to_string(shared_.arena.largest()) + ")");
  }
  const bool part = (frame.header.flags & wire::part) != 0;
  if (part ? !has_waiters() && start_fetch(slot, memory::Use::ahead) : start_fetch(slot, memory::Use::fetch))
    return;
  // Nobody holds what it could wait for.
  if (!part && shared_.arena.counters().blocks_leased == 0 && refused_by_system(slot)) return;
  park(bulk);
  if (!part) {
    recycle(receive_slot);
    return wait_to_fetch(slot);
  }
  bulk.held_back = true;
  Event event = bulk.request;  // which carries the receive
  event.word[ev::kind] = static_cast<std::int32_t>(EvKind::part_waits);
  event.word[ev::message_bytes] = 0;
  shared_.events.emit(event);
}

void Session::on_chunk_read(std::uint32_t slot, bool vanished) {
  --reads_outstanding_;
  if (staging_ != nullptr) land();
  ServerCall& call = server_calls_[slot];
  ServerBulk& bulk = *call.bulk;
  if (vanished && !call.cancelled) {
    call.cancelled = true;
    call.cancel_status = kInternal;
    bulk.refusal = "the client's memory of the request was gone before it had been read";
  }
  if (--bulk.reads_outstanding != 0) return;
  if (call.cancelled) return deliver_fetched(slot);
  if (bulk.moved == bulk.total)
    shared_.fetched.push_back({number_, wire::call_word(slot, call.generation), received_});
}

bool Session::deliver(const Shared::Fetched& fetched, bool queue_was_empty) {
  if (!open()) return true;
  const std::uint32_t slot = wire::call_slot(fetched.call);
  const ServerCall& call = server_calls_[slot];
  if (call.state != ServerState::fetching || call.generation != wire::call_generation(fetched.call))
    return true;
  // Frames come in order, and no more of them can have lain there than there are receives.
  if (!queue_was_empty && received_ - fetched.received < receive_depth_) return false;
  deliver_fetched(slot);
  return true;
}

void Session::deliver_fetched(std::uint32_t slot) {
  ServerCall& call = server_calls_[slot];
  ServerBulk& bulk = *call.bulk;
  if (call.cancelled) return refuse(slot, call.cancel_status, false, std::string(bulk.refusal));
  Event event = bulk.request;
  if (call.timeout_us != 0) {
    const std::uint64_t waited_us = (shared_.now_ns - call.arrived_ns) / 1000;
    if (waited_us >= call.timeout_us)
      return refuse(slot, kDeadlineExceeded, false, "deadline passed while the request was fetched");
    event.word[ev::timeout_us] =
        static_cast<std::int32_t>(call.timeout_us - static_cast<std::uint32_t>(waited_us));
  }
  event.word[ev::region] = static_cast<std::int32_t>(bulk.block);
  event.word[ev::offset] = bulk.image ? 1 : 0;
  event.word[ev::message_bytes] = static_cast<std::int32_t>(bulk.total);
  call.state = ServerState::running;
  call.bulk.reset();  // block and receive slot now belong to the event
  shared_.events.emit(event);
}

void Session::on_cancel(const wire::Header& header) {
  const std::uint32_t slot = wire::call_slot(header.call);
  ServerCall& call = server_calls_[slot];
  // A cancel that crossed our response: the response is the answer.
  if (call.generation != wire::call_generation(header.call)) return;
  switch (call.state) {
    case ServerState::idle:
      return;
    case ServerState::writing:
      return stop_writing(slot, header.method);
    case ServerState::waiting:
      forget_waiters(header.call);
      return refuse(slot, header.method, false, header.method == kDeadlineExceeded ? why_waiting(slot) : "");
    case ServerState::fetching:
      call.cancelled = true;
      call.cancel_status = static_cast<std::uint8_t>(header.method);
      call.bulk->refusal = "";
      if (call.bulk->reads_outstanding == 0) deliver_fetched(slot);
      return;
    case ServerState::asking:
      return refuse(slot, header.method, true, "");
    case ServerState::running: {
      Event event;
      event.word[ev::kind] = static_cast<std::int32_t>(EvKind::cancelled);
      event.word[ev::session] = static_cast<std::int32_t>(number_);
      event.word[ev::call] = static_cast<std::int32_t>(header.call);
      event.word[ev::method] = static_cast<std::int32_t>(header.method);
      shared_.events.emit(event);
      return refuse(slot, header.method, true, "");
    }
  }
}

// --- responses out

void Session::submit_response(const std::int32_t* words) {
  const auto word = static_cast<std::uint32_t>(words[sub::call]);
  const auto send_slot = static_cast<std::uint32_t>(words[sub::slot]);
  const std::uint32_t slot = wire::call_slot(word);
  if (!open() || slot >= options_.call_slots ||
      server_calls_[slot].generation != wire::call_generation(word)) {
    return shared_.slots.give_back(send_slot);
  }
  ServerCall& call = server_calls_[slot];
  // A part that nobody wants any more is answered unread.
  if (call.state == ServerState::waiting && call.bulk->held_back)
    end_server_call(call);
  else if (call.state != ServerState::running)
    return shared_.slots.give_back(send_slot);  // cancelled meanwhile
  const std::int32_t method = words[sub::method];
  const std::uint8_t flags = (method & boundary::kNotRun) != 0 ? wire::not_run : 0;
  const wire::Header header{static_cast<std::uint8_t>(wire::FrameType::response),
                            flags,
                            0,
                            word,
                            static_cast<std::uint32_t>(method & 0xff),
                            0};
  const auto metadata_bytes = static_cast<std::uint32_t>(words[sub::metadata_bytes]);
  // Idle before the frame is on the wire: the client's next request on this slot may come before our
  // completion does.
  call.state = ServerState::idle;
  send_message(send_slot, header, nullptr, metadata_bytes,
               metadata_bytes + static_cast<std::uint32_t>(words[sub::message_bytes]), call.invalidate_rkey,
               {});
}

std::int32_t Session::submit_bulk_response(const BulkSubmission& submission) {
  const std::uint32_t slot = wire::call_slot(submission.call);
  std::uint32_t token = shared_.take_token();
  const auto result = static_cast<std::int32_t>(token);
  if (!open() || slot >= options_.call_slots || server_calls_[slot].state != ServerState::running ||
      server_calls_[slot].generation != wire::call_generation(submission.call)) {
    shared_.slots.give_back(submission.slot);
    emit_sent(token);
    return result;
  }
  ServerCall& call = server_calls_[slot];
  auto bulk = std::make_unique<ServerBulk>();
  Reason reason;
  if (!collect_pieces(submission, bulk->pieces, reason)) return -static_cast<std::int32_t>(reason);
  bulk->image = submission.image;
  bulk->total = static_cast<std::uint32_t>(
      extent_of(bulk->pieces, bulk->image, [](const Piece& piece) { return piece.length; }));
  if (bulk->total == 0) {  // nothing to write: the frame is all there is
    emit_sent(token);
    const wire::Header header{static_cast<std::uint8_t>(wire::FrameType::response),
                              0,
                              0,
                              submission.call,
                              submission.method & 0xff,
                              0};
    call.state = ServerState::idle;
    send_message(submission.slot, header, nullptr, submission.metadata_bytes, submission.metadata_bytes,
                 call.invalidate_rkey, {});
    return result;
  }
  bulk->token = token;
  bulk->slot = static_cast<std::int32_t>(submission.slot);
  bulk->status = submission.method & 0xff;
  bulk->metadata_bytes = submission.metadata_bytes;
  call.bulk = std::move(bulk);
  if (call.has_sink && call.sink.length >= call.bulk->total) {
    call.state = ServerState::writing;
    transfers_.push(slot);
  } else {
    call.state = ServerState::asking;
    control(wire::FrameType::sink_request, submission.call, call.bulk->total);
  }
  return result;
}

void Session::on_sink(const wire::Frame& frame) {
  const std::uint32_t slot = wire::call_slot(frame.header.call);
  ServerCall& call = server_calls_[slot];
  // Crossed a cancel: the client revokes that sink when it has our answer to the cancel.
  if (call.generation != wire::call_generation(frame.header.call) || call.state == ServerState::idle) return;
  if (call.state != ServerState::asking) return protocol_error("sink that was not asked for");
  if ((frame.header.flags & wire::has_sink) == 0) {
    return refuse(
        slot, kResourceExhausted, true,
        "the client has no memory for a response of " + std::to_string(call.bulk->total) +
            " bytes: its application keeps large messages or leases, which leaseOf(message)?.release() "
            "gives back; or raise its arenaBytes, maxMessageBytes or stagingBytes");
  }
  if (frame.sink.length < call.bulk->total) return protocol_error("sink shorter than asked for");
  call.has_sink = call.exposed = true;
  call.sink = frame.sink;
  const bool lasting = (frame.header.flags & wire::lasting) != 0;
  if (call.invalidate_rkey == 0 && capabilities_.windows && !lasting) call.invalidate_rkey = frame.sink.rkey;
  call.state = ServerState::writing;
  transfers_.push(slot);
}

/// Behind the WRITEs on the same queue pair, so that they are in place when it arrives.
void Session::send_written_response(std::uint32_t slot) {
  ServerCall& call = server_calls_[slot];
  ServerBulk& bulk = *call.bulk;
  const auto send_slot = static_cast<std::uint32_t>(std::exchange(bulk.slot, -1));
  std::byte* payload = shared_.slots.payload(send_slot);
  const wire::Written written{bulk.total, 0};
  std::memmove(payload + sizeof written, payload, bulk.metadata_bytes);
  std::memcpy(payload, &written, sizeof written);
  const wire::Header header{static_cast<std::uint8_t>(wire::FrameType::response),
                            static_cast<std::uint8_t>(wire::written | (bulk.image ? wire::image : 0)),
                            0,
                            wire::call_word(slot, call.generation),
                            bulk.status,
                            0};
  const std::uint32_t metadata_bytes = bulk.metadata_bytes;
  const std::uint32_t index = keep_until_sent(call);
  send_message(send_slot, header, nullptr, metadata_bytes,
               static_cast<std::uint32_t>(sizeof written) + metadata_bytes, call.invalidate_rkey,
               {Then::bulk_sent, index});
}

/// The call is over; what its WRITEs are made from stays until the frame behind them has completed, with this
/// index.
std::uint32_t Session::keep_until_sent(ServerCall& call) {
  std::uint32_t index = 0;
  while (index < finishing_.size() && finishing_[index] != nullptr) ++index;
  if (index == finishing_.size()) finishing_.emplace_back();
  finishing_[index] = std::move(call.bulk);
  call.state = ServerState::idle;
  return index;
}

void Session::on_bulk_sent(std::uint32_t index) {
  end_response(*finishing_[index]);
  finishing_[index].reset();
}

void Session::end_response(ServerBulk& bulk) {
  if (bulk.slot >= 0) shared_.slots.give_back(static_cast<std::uint32_t>(bulk.slot));
  bulk.slot = -1;
  release_pieces(bulk.pieces);
  emit_sent(bulk.token);
}

/// Answers without JS, or after it: a refusal, a cancel that must be confirmed. No answer where nobody waits
/// for one.
void Session::refuse(std::uint32_t slot, std::uint32_t status, bool ran, const std::string& text) {
  ServerCall& call = server_calls_[slot];
  const bool cancel = text.empty();
  end_server_call(call);
  if (cancel && !call.exposed) return;
  const std::uint8_t flags = ran ? 0 : wire::not_run;
  const wire::Header header{static_cast<std::uint8_t>(wire::FrameType::response),
                            flags,
                            0,
                            wire::call_word(slot, call.generation),
                            status,
                            0};
  const std::int32_t send_slot = shared_.slots.within_share(place()) ? shared_.slots.take() : -1;
  if (send_slot < 0) {  // none is left for this session: the status alone, the client invalidates by itself
    if (!send_->send_control(header, nullptr, {}))
      protocol_error("control frames pile up: the peer returns no credits");
    return;
  }
  shared_.slots.hold(static_cast<std::uint32_t>(send_slot), place());
  const std::uint32_t bytes = static_cast<std::uint32_t>(std::min(text.size(), kErrorTextMax));
  std::memcpy(shared_.slots.payload(static_cast<std::uint32_t>(send_slot)), text.data(), bytes);
  // It names no key: the client's patience may be over at the same moment, and naming one that it has made
  // invalid would break the queue pair.
  send_message(static_cast<std::uint32_t>(send_slot), header, nullptr, 0, bytes, 0, {});
}

/// The client knows the limit and should not have sent it.
void Session::refuse_size(std::uint32_t slot, std::uint32_t bytes) {
  refuse(slot, kResourceExhausted, false,
         "request of " + std::to_string(bytes) + " bytes exceeds the server's maxMessageBytes (" +
             std::to_string(options_.max_message_bytes) + ")");
}

void Session::end_server_call(ServerCall& call) {
  call.state = ServerState::idle;
  if (call.bulk == nullptr) return;
  ServerBulk& bulk = *call.bulk;
  const auto slot = static_cast<std::uint32_t>(&call - server_calls_.data());
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    if (transfers_.at(i) == slot) transfers_.erase(i--);
  }
  if (bulk.block != memory::kNoBlock) shared_.arena.release(bulk.block);
  if (bulk.held_receive >= 0) recycle(static_cast<std::uint32_t>(bulk.held_receive));
  end_response(bulk);
  call.bulk.reset();
}

}  // namespace rdma_rpc::session
