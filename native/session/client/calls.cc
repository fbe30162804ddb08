// Sends requests and CANCELs, and handles responses: see client_endpoint.h. One rule shapes this folder: the
// last event of a call is emitted only after all of its windows have become invalid.
#include "session/client/client_endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "session/link/bulk_memory.h"

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
namespace ev = boundary::ev;
namespace sub = boundary::sub;

ClientCall& ClientEndpoint::begin_call(std::uint32_t slot, std::uint32_t method,
                                       const wire::PartHeader* part) {
  ClientCall& call = calls_[slot];
  call.generation = (call.generation + 1) & wire::kGenerationMask;
  call.method = method;
  call.state = ClientState::active;
  call.unsent = false;
  call.part = part != nullptr;
  call.opens = part != nullptr && part->kind == wire::kOpen;
  call.began = telemetry::time_of(shared_.now_ns);
  count_.begun(call.is_call());
  if (part != nullptr) shared_.stats.stream_messages_sent += part->count;
  if (call.is_call()) ++shared_.stats.calls;
  return call;
}

void ClientEndpoint::submit(const std::int32_t* words) {
  const bool part = words[sub::op] == static_cast<std::int32_t>(boundary::SubOp::part);
  const auto slot = static_cast<std::uint32_t>(words[sub::call]);
  const auto send_slot = static_cast<std::uint32_t>(words[sub::slot]);
  if (!link_.is_open() || slot >= options_.call_slots) {
    shared_.slots.release(send_slot);
    shared_.events.emit(Event::failed(number_, slot, Reason::session_lost, Processed::no));
    return;
  }
  const auto metadata_bytes = static_cast<std::uint32_t>(words[sub::metadata_bytes]);
  const wire::PartHeader head =
      part ? wire::part_header(shared_.slots.payload(send_slot), metadata_bytes) : wire::PartHeader{};
  ClientCall& call = begin_call(slot, static_cast<std::uint32_t>(words[sub::method]), part ? &head : nullptr);
  const auto message_bytes = static_cast<std::uint32_t>(words[sub::message_bytes]);
  const auto timeout_us = static_cast<std::uint32_t>(words[sub::timeout_us]);
  if (!link_.fits_frames(shared_.predictor.expected(call.method, RequestSize::small))) {
    call.bulk = std::make_unique<ClientBulk>();
    memory_.choose_reply_buffer(call, memory::kNoBlock);
    call.bulk->slot = send_slot;
    call.bulk->metadata_bytes = metadata_bytes;
    call.bulk->message_bytes = message_bytes;
    call.bulk->timeout_us = timeout_us;
    requests_.send(slot);
    return;
  }
  const wire::Header header =
      wire::Header::of(wire::FrameType::request, wire::call_word(slot, call.generation), call.method,
                       part ? wire::part : 0, timeout_us);
  link_.send_message(send_slot, header, nullptr, metadata_bytes, metadata_bytes + message_bytes, 0, {});
}

std::int32_t ClientEndpoint::submit_bulk(const BulkSubmission& submission) {
  if (!link_.is_open() || submission.call >= options_.call_slots) {
    return -static_cast<std::int32_t>(Reason::session_lost);
  }
  auto bulk = std::make_unique<ClientBulk>();
  Reason reason;
  if (!collect_gather_entries(link_, submission, bulk->gather_entries, reason))
    return -static_cast<std::int32_t>(reason);
  const bool lends =
      staging_ == nullptr && std::any_of(bulk->gather_entries.begin(), bulk->gather_entries.end(),
                                         [](const GatherEntry& gather_entry) { return gather_entry.lent; });
  bulk->reserve = lends && send_.reserve_cancel();
  // A caller that cancels is notified at once in two cases: when a credit is reserved for its CANCEL, or when
  // the request was sent as a copy. Otherwise the caller is notified only when the server returns a credit.
  // This takes minutes when the server is stopped. The session therefore sends a copy when it cannot reserve
  // a credit. If the arena has no room for the copy now, the request is sent later. Two kinds of messages are
  // nevertheless sent in place: requests that can never be copied, and parts of streams, which must not wait
  // for other streams.
  if (lends && !bulk->reserve && !copy_gather_entries(link_, submission, bulk->gather_entries) &&
      submission.op == boundary::SubOp::request) {
    release_gather_entries(link_, bulk->gather_entries);
    return -static_cast<std::int32_t>(Reason::no_memory);
  }
  if (!bulk->gather_entries.empty()) bulk->number = bulk->gather_entries.front().sealed_number;
  bulk->token = shared_.take_token();
  bulk->request_size = RequestSize::large;
  bulk->slot = submission.slot;
  bulk->metadata_bytes = submission.metadata_bytes;
  bulk->timeout_us = submission.timeout_us;
  bulk->aligned = submission.aligned;
  bulk->reply_buffer_only = submission.reply_buffer_only;
  const auto token = static_cast<std::int32_t>(bulk->token);
  const bool part = submission.op == boundary::SubOp::part;
  const wire::PartHeader head =
      part ? wire::part_header(shared_.slots.payload(submission.slot), submission.metadata_bytes)
           : wire::PartHeader{};
  ClientCall& call = begin_call(submission.call, submission.method, part ? &head : nullptr);
  call.bulk = std::move(bulk);
  memory_.choose_reply_buffer(call, submission.reply_buffer);
  requests_.send(submission.call);
  return token;
}

void ClientEndpoint::cancel(std::uint32_t slot, Reason reason) {
  if (!link_.is_open() || slot >= options_.call_slots) return;
  ClientCall& call = calls_[slot];
  // The response has arrived, but the device has not yet invalidated all windows.
  if (call.state == ClientState::revoking) revocation_.start_timeout(call, reason);
  if (call.state != ClientState::active) return;
  note_latency(slot, call, false);
  const std::uint32_t word = wire::call_word(slot, call.generation);
  bool unsent = send_.remove(word);
  if (call.bulk != nullptr && call.bulk->deferred) {
    requests_.remove(slot);
    unsent = true;
  }
  const bool exposed = call.bulk != nullptr && call.bulk->exposed && !unsent;
  const bool reserved = call.bulk != nullptr && std::exchange(call.bulk->reserve, false);
  const std::uint32_t status = reason == Reason::deadline ? 4 : 1;
  const SendQueue::Done done = exposed ? SendQueue::Done{Then::cancel_arrived, word} : SendQueue::Done{};
  if (unsent && reserved) send_.release_reserve();
  if (!unsent && reserved)
    send_.send_reserved_cancel(wire::Header::of(wire::FrameType::cancel, word, status), done);
  if (!unsent && !reserved) link_.control(wire::FrameType::cancel, word, status, nullptr, done);
  if (!link_.is_open()) return;
  const Event event = Event::failed(number_, slot, reason, unsent ? Processed::no : Processed::maybe);
  if (call.bulk == nullptr) {
    call.state = unsent ? ClientState::idle : ClientState::cancelled;
    if (!unsent) ++late_expected_;
    count_.ended(call.is_call());
    shared_.events.emit(event);
  } else if (!exposed) {
    if (!unsent) expect_late_response(call);
    revocation_.end(slot, event);
    // The request was not sent, but its windows may be bound. The windows become invalid only after all work
    // requests posted earlier have completed.
    if (call.state == ClientState::revoking) revocation_.start_timeout(call, reason);
  } else {
    call.state = ClientState::leaving;
    revocation_.start_timeout(call, reason);
#ifdef RDMA_RPC_CANARY
    shared_.events.emit(event);
#endif
  }
}

/// The call ends without a response. The response may still arrive later.
void ClientEndpoint::expect_late_response(ClientCall& call) {
  ++late_expected_;
  call.bulk->late_may_come = true;
}

bool ClientEndpoint::late_response(ClientCall& call, std::uint32_t generation) {
  const std::uint32_t age = (call.generation - generation) & wire::kGenerationMask;
  if (age > wire::kGenerationMask / 2 || late_expected_ == 0) return false;
  if (age == 0 && call.state == ClientState::cancelled) {
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

bool ClientEndpoint::on_message(const wire::Frame& frame, const std::byte* /*data*/, ReceiveSlot receive_slot,
                                std::uint32_t invalidated_rkey) {
  if (frame.header.type != static_cast<std::uint8_t>(wire::FrameType::response)) return false;
  on_response(frame, receive_slot, invalidated_rkey);
  return true;
}

void ClientEndpoint::on_response(const wire::Frame& frame, ReceiveSlot receive_slot,
                                 std::uint32_t invalidated_rkey) {
  const wire::Header& header = frame.header;
  const std::uint32_t slot = wire::call_slot(header.call);
  ClientCall& call = calls_[slot];
  const bool current = wire::call_generation(header.call) == call.generation &&
                       (call.state == ClientState::active || call.state == ClientState::leaving);
  if (!current) {
    if (invalidated_rkey != 0 || !late_response(call, wire::call_generation(header.call))) {
      return link_.protocol_error("response to a call that waits for none");
    }
    return link_.recycle(receive_slot);
  }
  if (call.bulk != nullptr && call.bulk->deferred)
    return link_.protocol_error("response to a request that was not sent");
  const bool in_reply_buffer = (header.flags & wire::written) != 0;
  Event event = Event::of(EvKind::settled, number_, slot);
  event.set(ev::status, header.method);
  event.set(ev::metadata_bytes, frame.metadata_bytes);
  const std::uint32_t base = link_.receives().offset_of(receive_slot);
  event.set(ev::metadata_offset, base + frame.metadata_offset);
  event.set(ev::region, boundary::kReceiveSlab);
  event.set(ev::offset, base + frame.metadata_offset);
  event.set(ev::message_bytes, in_reply_buffer ? frame.total : frame.message_bytes);
  event.set(ev::processed, (header.flags & wire::not_run) != 0 ? Processed::no : Processed::yes);
  event.set(ev::receive_slot, receive_slot.number() + 1);
  if (header.method == 0 && !in_reply_buffer && frame.message_bytes > options_.max_message_bytes) {
    link_.recycle(receive_slot);
    event = Event::failed(number_, slot, Reason::too_large, Processed::yes);
  }

  if (call.state == ClientState::active) note_latency(slot, call, header.method == 0);
  if (!call.is_call()) {
    const std::byte* metadata = link_.receives().memory_of(receive_slot) + base + frame.metadata_offset;
    shared_.stats.stream_messages_received +=
        wire::messages_answered(metadata, frame.metadata_bytes, header.method);
  }
  if (call.bulk == nullptr) {
    if (in_reply_buffer || invalidated_rkey != 0)
      return link_.protocol_error("response used a reply buffer that it was not given");
    const bool settles = event.is(EvKind::settled);
    if (settles && !link_.put_together(event, frame)) return;
    shared_.predictor.learn(call.method, RequestSize::small, frame.message_bytes, false);
    call.state = ClientState::idle;
    count_.ended(call.is_call());
    shared_.events.emit(event);
    return;
  }
  ClientBulk& bulk = *call.bulk;
  // The event of a call with exposed memory may have to wait for its windows, but reassembled messages must
  // not wait.
  if (bulk.exposed && link_.has_segments())
    return link_.protocol_error("response in segments to a call that has exposed memory");
  // If memory of the request is gone, the server may have read other bytes than the caller's.
  const bool memory_gone = !bulk.notified && any_memory_gone(bulk.gather_entries);
  if (in_reply_buffer) {
    if (frame.total == 0 || frame.total > bulk.reply_buffer_capacity) {
      return link_.protocol_error("response written beyond its reply buffer");
    }
    ++shared_.stats.bulk_responses;
    // The response is copied before it is read, because the peer can still change the staging memory.
    if (bulk.staged_reply_buffer != memory::kNoBlock && !bulk.notified) {
      std::memcpy(shared_.arena.at(bulk.reply_buffer).data, staging_->at(bulk.staged_reply_buffer).data,
                  frame.total);
    }
    if (link_.sealing() != nullptr) bulk.answer = frame.bulk_number;
    event.set(ev::region, bulk.reply_buffer);
    event.set(ev::aligned, (header.flags & wire::aligned) != 0 ? 1 : 0);
    // The reference now belongs to the event.
    if (!bulk.notified && !memory_gone) bulk.reply_buffer = memory::kNoBlock;
  }
  if (invalidated_rkey != 0) {
    const auto window = std::find_if(bulk.windows.begin(), bulk.windows.end(),
                                     [&](const auto& each) { return each->rkey() == invalidated_rkey; });
    // If the key belongs to another call, this call's memory is still exposed.
    if (window == bulk.windows.end())
      return link_.protocol_error("response invalidated a key that is not its call's");
    shared_.windows.release(std::move(*window));
    bulk.windows.erase(window);
  }
  if (bulk.notified) {  // the caller has its FAILED event; only the memory is released now
    ++shared_.stats.late_responses;
    link_.recycle_of(event);
    return revocation_.end(slot, Event::of(EvKind::released, number_, slot));
  }
  if (memory_gone) {
    link_.recycle_of(event);
    event = Event::failed(number_, slot, Reason::detached, static_cast<Processed>(event.word[ev::processed]));
  }
  if (event.is(EvKind::settled)) {  // in a FAILED event the same word is the reason
    if (!link_.put_together(event, frame)) return;
    event.set(ev::refused_bytes, bulk.refused_bytes);
  }
  shared_.predictor.learn(call.method, bulk.request_size, in_reply_buffer ? frame.total : frame.message_bytes,
                          in_reply_buffer);
  revocation_.end(slot, event);
}

}  // namespace rdma_rpc::session
