// The client half of a session: requests out, responses in, and the memory that a call exposes meanwhile. The
// rule that shapes this file: a call's last event is emitted only when no window of it is valid any more. See
// session.h.
#include <algorithm>

#include "session/session.h"

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
using boundary::Reason;
using boundary::Sent;
namespace ev = boundary::ev;
namespace sub = boundary::sub;

// --- requests

ClientCall& Session::begin_call(std::uint32_t slot, std::uint32_t method) {
  ClientCall& call = client_calls_[slot];
  call.generation = (call.generation + 1) & wire::kGenerationMask;
  call.method = method;
  call.state = ClientState::active;
  call.unsent = false;
  ++calls_in_flight_;
  ++shared_.stats.calls;
  return call;
}

void Session::submit_request(const std::int32_t* words) {
  const auto slot = static_cast<std::uint32_t>(words[sub::call]);
  const auto send_slot = static_cast<std::uint32_t>(words[sub::slot]);
  if (!open() || !options_.client || slot >= options_.inflight_max) {
    shared_.slots.give_back(send_slot);
    shared_.events.emit(failed_event(slot, Reason::session_lost, Sent::no));
    return;
  }
  ClientCall& call = begin_call(slot, static_cast<std::uint32_t>(words[sub::method]));
  const auto metadata_bytes = static_cast<std::uint32_t>(words[sub::metadata_bytes]);
  const auto message_bytes = static_cast<std::uint32_t>(words[sub::message_bytes]);
  const auto timeout_us = static_cast<std::uint32_t>(words[sub::timeout_us]);
  if (shared_.predictor.expected(call.method) > shared_.slot_bytes) {
    call.bulk = std::make_unique<ClientBulk>();
    choose_sink(call, memory::kNoBlock);
    call.bulk->slot = send_slot;
    call.bulk->metadata_bytes = metadata_bytes;
    call.bulk->message_bytes = message_bytes;
    call.bulk->timeout_us = timeout_us;
    if (!start_bulk_request(slot)) deferred_.push_back(slot);
    return;
  }
  const wire::Header header{static_cast<std::uint8_t>(wire::FrameType::request),
                            0,
                            0,
                            wire::call_word(slot, call.generation),
                            call.method,
                            timeout_us};
  send_message(send_slot, header, nullptr, metadata_bytes, metadata_bytes + message_bytes, 0, {});
}

std::int32_t Session::submit_bulk_request(const BulkSubmission& submission) {
  if (!open() || !options_.client || submission.call >= options_.inflight_max) {
    return -static_cast<std::int32_t>(Reason::session_lost);
  }
  auto bulk = std::make_unique<ClientBulk>();
  Reason reason;
  if (!collect_pieces(submission, bulk->pieces, reason)) return -static_cast<std::int32_t>(reason);
  bulk->token = shared_.take_token();
  bulk->slot = submission.slot;
  bulk->metadata_bytes = submission.metadata_bytes;
  bulk->timeout_us = submission.timeout_us;
  const auto token = static_cast<std::int32_t>(bulk->token);
  ClientCall& call = begin_call(submission.call, submission.method);
  call.bulk = std::move(bulk);
  choose_sink(call, submission.sink);
  if (!start_bulk_request(submission.call)) deferred_.push_back(submission.call);
  return token;
}

/// The caller's block, or one for what this method last answered with. Without either the server asks when it
/// must.
void Session::choose_sink(ClientCall& call, memory::BlockId given) {
  ClientBulk& bulk = *call.bulk;
  if (given != memory::kNoBlock && shared_.arena.live(given)) {
    shared_.arena.retain(given);
    bulk.sink = given;
  } else if (const std::uint32_t expected = shared_.predictor.expected(call.method);
             expected > shared_.slot_bytes && expected <= options_.max_message_bytes) {
    bulk.sink = shared_.arena.alloc(expected);
    if (bulk.sink != memory::kNoBlock) ++shared_.stats.sinks_predicted;
  }
}

bool Session::bind_sink(ClientBulk& bulk) {
  auto window = shared_.windows.take();
  if (window == nullptr) return false;
  const memory::Block& block = shared_.arena.at(bulk.sink);
  bulk.sink_capacity =
      static_cast<std::uint32_t>(std::min<std::size_t>(block.capacity, options_.max_message_bytes));
  send_->bind(*window, *block.region, reinterpret_cast<std::uint64_t>(block.data), bulk.sink_capacity,
              fabric::access_remote_write);
  bulk.sink_rkey = window->rkey();
  bulk.windows.push_back(std::move(window));
  return true;
}

/// Binds the call's windows and sends its frame. False: no room for that yet, come back in a later turn.
bool Session::start_bulk_request(std::uint32_t slot) {
  ClientCall& call = client_calls_[slot];
  ClientBulk& bulk = *call.bulk;
  bulk.deferred = true;
  if (!send_->can_bind(static_cast<std::uint32_t>(bulk.pieces.size()) + 1)) return false;
  wire::Header header{static_cast<std::uint8_t>(wire::FrameType::request),
                      0,
                      0,
                      wire::call_word(slot, call.generation),
                      call.method,
                      bulk.timeout_us};
  wire::Piece wire_pieces[kPiecesMax];
  wire::PiecesHead head{0, static_cast<std::uint32_t>(bulk.pieces.size())};
  for (std::uint32_t i = 0; i < head.count; ++i) {
    const Piece& piece = bulk.pieces[i];
    auto window = shared_.windows.take();
    if (window == nullptr) {
      // Windows ran out half way: what is bound must be revoked before the call may end.
      shared_.slots.give_back(bulk.slot);
      bulk.deferred = false;
      revoke_then(slot, failed_event(slot, Reason::registration, Sent::no));
      return true;
    }
    send_->bind(*window, *piece.region, piece.addr, piece.length, fabric::access_remote_read);
    wire_pieces[i] = {piece.addr, piece.length, window->rkey()};
    head.total += piece.length;
    bulk.windows.push_back(std::move(window));
  }
  bulk.deferred = false;
  wire::Sink sink{};
  const bool has_sink = bulk.sink != memory::kNoBlock && bind_sink(bulk);
  if (has_sink) {
    sink = {reinterpret_cast<std::uint64_t>(shared_.arena.at(bulk.sink).data), bulk.sink_capacity,
            bulk.sink_rkey};
  }
  if (head.count == 0) {
    send_message(bulk.slot, header, has_sink ? &sink : nullptr, bulk.metadata_bytes,
                 bulk.metadata_bytes + bulk.message_bytes, 0, {});
    return true;
  }
  // The pieces do not fit the headroom of a slot: the metadata makes place for them, and they become part of
  // the payload.
  header.flags |= wire::has_pieces;
  std::byte* payload = shared_.slots.payload(bulk.slot);
  const std::uint32_t pieces_bytes =
      static_cast<std::uint32_t>(sizeof head + head.count * sizeof(wire::Piece));
  std::memmove(payload + pieces_bytes, payload, bulk.metadata_bytes);
  std::memcpy(payload, &head, sizeof head);
  std::memcpy(payload + sizeof head, wire_pieces, head.count * sizeof(wire::Piece));
  send_message(bulk.slot, header, has_sink ? &sink : nullptr, bulk.metadata_bytes,
               pieces_bytes + bulk.metadata_bytes, 0, {});
  return true;
}

void Session::start_deferred() {
  // Taken out first: a request that breaks the session must not be found here by fail().
  while (!deferred_.empty()) {
    const std::uint32_t slot = deferred_.front();
    deferred_.erase(deferred_.begin());
    if (start_bulk_request(slot)) continue;
    deferred_.insert(deferred_.begin(), slot);
    return;
  }
}

// --- responses

bool Session::late_response(ClientCall& call, std::uint32_t generation) {
  const std::uint32_t age = (call.generation - generation) & wire::kGenerationMask;
  if (age > wire::kGenerationMask / 2 || late_expected_ == 0) return false;
  if (age == 0 && call.state == ClientState::given_up) {
    call.state = ClientState::idle;
  } else if (age == 0 && call.state == ClientState::revoking && call.bulk->late_may_come) {
    call.bulk->late_may_come = false;
  } else if (age == 0) {
    return false;
  }
  --late_expected_;
  ++shared_.stats.late_responses;
  return true;
}

void Session::on_response(const wire::Frame& frame, std::uint32_t receive_slot,
                          std::uint32_t invalidated_rkey) {
  const wire::Header& header = frame.header;
  const std::uint32_t slot = wire::call_slot(header.call);
  ClientCall& call = client_calls_[slot];
  const bool current = wire::call_generation(header.call) == call.generation &&
                       (call.state == ClientState::active || call.state == ClientState::leaving);
  if (!current) {
    if (invalidated_rkey != 0 || !late_response(call, wire::call_generation(header.call))) {
      return protocol_error("response to a call that waits for none");
    }
    return recycle(receive_slot);
  }
  if (call.bulk != nullptr && call.bulk->deferred)
    return protocol_error("response to a request that was not sent");
  const bool in_sink = (header.flags & wire::written) != 0;
  Event event;
  event.word[ev::kind] = static_cast<std::int32_t>(EvKind::settled);
  event.word[ev::session] = static_cast<std::int32_t>(number_);
  event.word[ev::call] = static_cast<std::int32_t>(slot);
  event.word[ev::method] = static_cast<std::int32_t>(header.method);
  event.word[ev::metadata_bytes] = static_cast<std::int32_t>(frame.metadata_bytes);
  const std::uint32_t base = receive_slot * receive_stride_;
  event.word[ev::metadata_offset] = static_cast<std::int32_t>(base + frame.metadata_offset);
  event.word[ev::region] = boundary::kReceiveSlab;
  event.word[ev::offset] = static_cast<std::int32_t>(base + frame.metadata_offset);
  event.word[ev::message_bytes] = static_cast<std::int32_t>(in_sink ? frame.total : frame.message_bytes);
  event.word[ev::sent] =
      static_cast<std::int32_t>((header.flags & wire::not_run) != 0 ? Sent::no : Sent::yes);
  event.word[ev::reserved] = static_cast<std::int32_t>(receive_slot + 1);

  if (call.bulk == nullptr) {
    if (in_sink || invalidated_rkey != 0) return protocol_error("response used a sink that it was not given");
    shared_.predictor.learn(call.method, frame.message_bytes, false);
    call.state = ClientState::idle;
    --calls_in_flight_;
    shared_.events.emit(event);
    return;
  }
  ClientBulk& bulk = *call.bulk;
  if (in_sink) {
    if (bulk.sink_rkey == 0 || frame.total == 0 || frame.total > bulk.sink_capacity) {
      return protocol_error("response written beyond its sink");
    }
    event.word[ev::region] = static_cast<std::int32_t>(bulk.sink);
    event.word[ev::offset] = 0;
    bulk.sink = memory::kNoBlock;  // its reference goes to JS with the event
  }
  if (invalidated_rkey != 0) {
    const auto window = std::find_if(bulk.windows.begin(), bulk.windows.end(),
                                     [&](const auto& each) { return each->rkey() == invalidated_rkey; });
    // A key that is not this call's would leave the caller's memory open while we believe it shut.
    if (window == bulk.windows.end())
      return protocol_error("response invalidated a key that is not its call's");
    shared_.windows.give_back(std::move(*window));
    bulk.windows.erase(window);
  }
  shared_.predictor.learn(call.method, in_sink ? frame.total : frame.message_bytes, in_sink);
  revoke_then(slot, event);
}

// --- sinks that the server asks for

void Session::on_sink_request(const wire::Header& header) {
  const std::uint32_t slot = wire::call_slot(header.call);
  ClientCall& call = client_calls_[slot];
  // A request that crossed our cancel: the cancel answers it.
  if (wire::call_generation(header.call) != call.generation || call.state != ClientState::active) return;
  if (call.bulk == nullptr) call.bulk = std::make_unique<ClientBulk>();
  ClientBulk& bulk = *call.bulk;
  if (bulk.deferred) return protocol_error("sink request for a request that was not sent");
  if (bulk.sink_asked) return protocol_error("second sink request of one call");
  bulk.sink_asked = true;
  ++shared_.stats.sinks_asked;
  if (header.method > options_.max_message_bytes || header.method > shared_.arena.largest()) {
    return control(wire::FrameType::sink, header.call, 0);
  }
  if (bulk.sink != memory::kNoBlock) {  // too small: stays bound until the call ends
    bulk.pieces.push_back({0, 0, nullptr, bulk.sink, 0});
    bulk.sink = memory::kNoBlock;
  }
  bulk.sink_rkey = 0;  // from now on only the new sink may have the answer
  bulk.sink_capacity = header.method;
  if (answer_sink_request(slot)) return;
  if (!shared_.memory_waiters.push({number_, header.call, true}))
    control(wire::FrameType::sink, header.call, 0);
}

/// False: no arena memory, or no room to bind, yet.
bool Session::answer_sink_request(std::uint32_t slot) {
  ClientCall& call = client_calls_[slot];
  ClientBulk& bulk = *call.bulk;
  if (!send_->can_bind(1)) return false;
  bulk.sink = shared_.arena.alloc(bulk.sink_capacity);
  if (bulk.sink == memory::kNoBlock) return false;
  const std::uint32_t word = wire::call_word(slot, call.generation);
  if (!bind_sink(bulk)) {
    shared_.arena.release(std::exchange(bulk.sink, memory::kNoBlock));
    control(wire::FrameType::sink, word, 0);
    return true;
  }
  const wire::Sink sink{reinterpret_cast<std::uint64_t>(shared_.arena.at(bulk.sink).data), bulk.sink_capacity,
                        bulk.sink_rkey};
  control(wire::FrameType::sink, word, 0, &sink);
  return true;
}

}  // namespace rdma_rpc::session
