// Receives requests, refuses them, and handles CANCELs. See server_endpoint.h.
#include "session/server/server_endpoint.h"

#include <algorithm>
#include <cstring>

#include "session/server/status.h"

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
namespace ev = boundary::ev;

void ServerEndpoint::on_request(const wire::Frame& frame, const std::byte* data, ReceiveSlot receive_slot) {
  const wire::Header& header = frame.header;
  const std::uint32_t slot = wire::call_slot(header.call);
  ServerCall& call = calls_[slot];
  if (call.state != ServerState::idle) return link_.protocol_error("request on a call slot that is in use");
  call.generation = wire::call_generation(header.call);
  call.state = ServerState::running;
  call.has_reply_buffer = (header.flags & wire::has_reply_buffer) != 0;
  call.exposed = (header.flags & (wire::has_reply_buffer | wire::has_gather_list)) != 0;
  call.cancelled = false;
  call.deferred = false;
  call.invalidates = capabilities_.windows && (header.flags & wire::lasting) == 0;
  call.invalidate_rkey = 0;
  if (call.has_reply_buffer) {
    call.reply_buffer = frame.reply_buffer;
    if (call.invalidates) call.invalidate_rkey = frame.reply_buffer.rkey;
  }
  call.part = (header.flags & wire::part) != 0;
  call.opens = false;
  if (call.part) {
    const wire::PartHeader part = wire::part_header(data + frame.metadata_offset, frame.metadata_bytes);
    call.opens = part.kind == wire::kOpen;
    shared_.stats.stream_messages_received += part.count;
  }
  call.method = header.method;
  call.timeout_us = header.timeout_us;
  call.arrived_ns = shared_.now_ns;
  count_.begun(call.is_call());
  if (call.is_call()) ++shared_.stats.requests;

  Event event = Event::of(EvKind::request, number_, header.call);
  event.set(ev::method, header.method);
  event.set(ev::timeout_us, header.timeout_us);
  event.set(ev::region, boundary::kReceiveSlab);
  const std::uint32_t base = link_.receives().offset_of(receive_slot);
  event.set(ev::offset, base + frame.metadata_offset);
  event.set(ev::metadata_bytes, frame.metadata_bytes);
  event.set(ev::metadata_offset, base + frame.metadata_offset);
  event.set(ev::message_bytes, frame.message_bytes);
  event.set(ev::part, (header.flags & wire::part) != 0 ? 1 : 0);
  event.set(ev::receive_slot, receive_slot.number() + 1);
  if ((header.flags & wire::has_gather_list) == 0) {
    if (frame.message_bytes <= options_.max_message_bytes) {
      if (link_.put_together(event, frame)) shared_.events.emit(event);
      return;
    }
    link_.recycle(receive_slot);
    return refuse_size(slot, frame.message_bytes);
  }
  call.state = ServerState::waiting;  // JS does not know the request yet
  call.bulk = std::make_unique<ServerBulk>();
  call.bulk->request = event;
  on_bulk_request(slot, frame, data, receive_slot);
}

void ServerEndpoint::on_bulk_request(std::uint32_t slot, const wire::Frame& frame, const std::byte* data,
                                     ReceiveSlot receive_slot) {
  ServerCall& call = calls_[slot];
  ServerBulk& bulk = *call.bulk;
  bulk.aligned = (frame.header.flags & wire::aligned) != 0;
  bulk.held_receive = receive_slot;
  std::uint64_t sum = 0, inlined = 0;
  std::uint32_t first_key = 0;
  bulk.remote.reserve(frame.gather_entry_count);
  for (std::uint32_t i = 0; i < frame.gather_entry_count; ++i) {
    // Each entry is copied here and checked again, because the peer may have changed the entries since they
    // were parsed.
    bulk.remote.push_back(wire::gather_entry_at(data, frame, i));
    const wire::GatherEntry& gather_entry = bulk.remote.back();
    if (gather_entry.length == 0) return link_.protocol_error("gather entry of no bytes");
    sum += gather_entry.length;
    if (gather_entry.inlined()) inlined += gather_entry.length;
    if (first_key == 0) first_key = gather_entry.rkey;
  }
  if (sum != frame.total || inlined != frame.inlined_bytes || first_key == 0)
    return link_.protocol_error("gather entries do not add up to the total");
  bulk.inlined_bytes = frame.inlined_bytes;
  const std::uint64_t extent = extent_of(
      bulk.remote, bulk.aligned, [](const wire::GatherEntry& gather_entry) { return gather_entry.length; });
  bulk.total = static_cast<std::uint32_t>(std::min<std::uint64_t>(extent, UINT32_MAX));
  bulk.number = frame.bulk_number;
  std::uint64_t message = extent;
  if (link_.sealing() != nullptr) {
    message = plain_bytes(bulk.total);
    if (message == 0 || frame.gather_entry_count != 1)
      return link_.protocol_error("a sealed message of an impossible length");
  }
  if (call.invalidates && call.invalidate_rkey == 0) call.invalidate_rkey = first_key;
  const std::uint64_t allowed =
      bulk.aligned ? wire::aligned_bytes_max(options_.max_message_bytes) : options_.max_message_bytes;
  if (message > std::min<std::uint64_t>(allowed, UINT32_MAX))
    return refuse_size(slot, static_cast<std::uint32_t>(std::min<std::uint64_t>(message, UINT32_MAX)));
  if (bulk.total > shared_.arena.largest()) {
    return refuse(slot, kResourceExhausted, false,
                  "request of " + std::to_string(bulk.total) + " bytes exceeds the server's arenaBytes (" +
                      std::to_string(shared_.arena.largest()) + ")");
  }
  if (link_.options().arena_max_bytes != 0 && bulk.total > link_.options().arena_max_bytes) {
    return refuse(slot, kResourceExhausted, false,
                  "request of " + std::to_string(bulk.total) + " bytes exceeds the " +
                      std::to_string(link_.options().arena_max_bytes) +
                      " bytes that one session may hold (option quotas: arenaBytesMax of the server)");
  }
  const bool part = (frame.header.flags & wire::part) != 0;
  if (part ? !link_.has_waiters() && start_fetch(slot, memory::Use::ahead)
           : start_fetch(slot, memory::Use::fetch))
    return;
  // When no block is in use, there is no memory to wait for.
  if (!part && shared_.arena.counters().blocks_leased == 0 && refused_by_system(slot)) return;
  overflow_metadata(bulk);
  if (!part) {
    link_.recycle(receive_slot);
    return wait_to_fetch(slot);
  }
  bulk.held_back = true;
  Event event = bulk.request;  // the receive now belongs to this event
  event.set(ev::kind, EvKind::part_waits);
  event.set(ev::message_bytes, 0);
  shared_.events.emit(event);
}

void ServerEndpoint::on_chunk_read(ReadRef read, bool memory_gone) {
  const std::uint32_t slot = read.slot;
  transfers_.on_read(read.bytes);
  ServerCall& call = calls_[slot];
  ServerBulk& bulk = *call.bulk;
  if (memory_gone && !call.cancelled) {
    stop_fetching(slot, kInternal, "the client freed memory of the request before the server had read it");
  }
  if (--bulk.reads_outstanding != 0) return;
  if (call.cancelled) return deliver_fetched(slot);
  if (bulk.moved == bulk.total)
    shared_.fetched.push_back({number_, wire::call_word(slot, call.generation), link_.received(),
                               link_.queue_pair().message_mark()});
}

bool ServerEndpoint::deliver(const Shared::Fetched& fetched, bool queue_was_empty) {
  if (!link_.is_open()) return true;
  const std::uint32_t slot = wire::call_slot(fetched.call);
  const ServerCall& call = calls_[slot];
  if (call.state != ServerState::fetching || call.generation != wire::call_generation(fetched.call))
    return true;
  // Other sessions may keep the completion queue from ever being empty. Two facts are enough, though. The
  // fabric may know that the queue has no entry of this session. Otherwise the session must have received
  // enough frames after the READ completed. Frames arrive in order, and the queue contained at most as many
  // of them as this session has receives.
  if (!queue_was_empty && link_.queue_pair().may_hold_messages(fetched.mark) &&
      link_.received() - fetched.received < link_.receives().depth())
    return false;
  deliver_fetched(slot);
  return true;
}

void ServerEndpoint::deliver_fetched(std::uint32_t slot) {
  ServerCall& call = calls_[slot];
  ServerBulk& bulk = *call.bulk;
  if (call.cancelled) return refuse(slot, call.cancel_status, false, std::string(bulk.refusal));
  Event event = bulk.request;
  if (call.timeout_us != 0) {
    const std::uint64_t waited_us = (shared_.now_ns - call.arrived_ns) / 1000;
    if (waited_us >= call.timeout_us)
      return refuse(slot, kDeadlineExceeded, false, "deadline passed while the request was fetched");
    event.set(ev::timeout_us, call.timeout_us - static_cast<std::uint32_t>(waited_us));
  }
  event.set(ev::region, bulk.block);
  event.set(ev::aligned, bulk.aligned ? 1 : 0);
  std::uint32_t message_bytes = bulk.total;
  if (link_.sealing() != nullptr) {
    message_bytes = link_.open_bulk(shared_.arena.at(bulk.block).data, bulk.total, bulk.number, false);
    if (message_bytes == 0) return link_.protocol_error("a large message that it has not sealed");
  }
  event.set(ev::message_bytes, message_bytes);
  enter(call, ServerState::running);
  call.bulk.reset();  // the block and the receive slot now belong to the event
  shared_.events.emit(event);
}

/// Stops reading a request, and refuses it when its READs have completed. When a CPU of this side executes
/// READs, the READs are abandoned, so that the memory of the request is free at once.
void ServerEndpoint::stop_fetching(std::uint32_t slot, std::uint32_t status, std::string why) {
  ServerCall& call = calls_[slot];
  ServerBulk& bulk = *call.bulk;
  call.cancelled = true;
  call.cancel_status = static_cast<std::uint8_t>(status);
  bulk.refusal = std::move(why);
  bulk.turn.leave();
  if (bulk.reads_outstanding == 0) return deliver_fetched(slot);
  if (staging_ != nullptr || bulk.block == memory::kNoBlock) return;
  const memory::Block& block = shared_.arena.at(bulk.block);
  if (link_.queue_pair().abandon_reads(reinterpret_cast<std::uint64_t>(block.data), block.capacity))
    shared_.arena.release(std::exchange(bulk.block, memory::kNoBlock));
}

void ServerEndpoint::on_cancel(const wire::Header& header) {
  const std::uint32_t slot = wire::call_slot(header.call);
  ServerCall& call = calls_[slot];
  // The CANCEL and our response were on their way at the same time. The response answers the CANCEL.
  if (call.generation != wire::call_generation(header.call)) return;
  switch (call.state) {
    case ServerState::idle:
      return;
    case ServerState::writing:
      return stop_writing(slot, header.method, "");
    case ServerState::waiting:
      shared_.memory_waiters.forget(number_, header.call);
      return refuse(slot, header.method, false, header.method == kDeadlineExceeded ? why_waiting(slot) : "");
    case ServerState::fetching:
      return stop_fetching(slot, header.method, "");
    case ServerState::asking:
      return refuse(slot, header.method, true, "");
    case ServerState::running: {
      Event event = Event::of(EvKind::cancelled, number_, header.call);
      event.set(ev::status, header.method);
      shared_.events.emit(event);
      return refuse(slot, header.method, !call.deferred, "");
    }
  }
}

bool ServerEndpoint::defer_handler(std::uint32_t word, bool deferred) {
  ServerCall& call = calls_[wire::call_slot(word)];
  if (call.generation != wire::call_generation(word) || call.state != ServerState::running) return false;
  call.deferred = deferred;
  return true;
}

/// Sends a response that JS does not send: a refusal, or the confirmation of a CANCEL. A cancelled call that
/// has exposed no memory needs no confirmation.
void ServerEndpoint::refuse(std::uint32_t slot, std::uint32_t status, bool ran, const std::string& text) {
  ServerCall& call = calls_[slot];
  const bool cancel = text.empty();
  end_call(slot, call);
  if (cancel && !call.exposed) return;
  const std::uint8_t flags = ran ? 0 : wire::not_run;
  const wire::Header header =
      wire::Header::of(wire::FrameType::response, wire::call_word(slot, call.generation), status, flags);
  const std::int32_t send_slot = shared_.slots.within_share(link_.table_index()) ? shared_.slots.take() : -1;
  if (send_slot < 0) {  // the session has no send slot left, so the status is sent without a text
    if (!send_.send_control(header, nullptr, {}))
      link_.protocol_error("too many control frames wait because the peer returns no credits");
    return;
  }
  shared_.slots.hold(static_cast<std::uint32_t>(send_slot), link_.table_index());
  const std::uint32_t bytes = static_cast<std::uint32_t>(std::min(text.size(), kErrorTextMax));
  std::memcpy(shared_.slots.payload(static_cast<std::uint32_t>(send_slot)), text.data(), bytes);
  // A refusal does not invalidate a key of the client. The client may have timed out at the same moment and
  // invalidated the key itself, and naming an invalid key would break the queue pair.
  link_.send_message(static_cast<std::uint32_t>(send_slot), header, nullptr, 0, bytes, 0, {});
}

/// Refuses a request that is too large. The client knows the limit, so it should not have sent the request.
void ServerEndpoint::refuse_size(std::uint32_t slot, std::uint32_t bytes) {
  refuse(slot, kResourceExhausted, false,
         "request of " + std::to_string(bytes) + " bytes exceeds the server's messageMaxBytes (" +
             std::to_string(options_.max_message_bytes) + ")");
}

void ServerEndpoint::end_call(std::uint32_t slot, ServerCall& call) {
  set_idle(slot, call, false);
  if (call.bulk == nullptr) return;
  ServerBulk& bulk = *call.bulk;
  if (bulk.block != memory::kNoBlock) shared_.arena.release(bulk.block);
  if (bulk.held_receive) link_.recycle(*bulk.held_receive);
  end_response(bulk);
  call.bulk.reset();
}

}  // namespace rdma_rpc::session
