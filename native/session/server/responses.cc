// Sends the frames of responses, and keeps the memory that their WRITEs read. See server_endpoint.h.
#include "session/server/server_endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "session/link/bulk_memory.h"
#include "session/server/status.h"

namespace rdma_rpc::session {

using boundary::Reason;
namespace sub = boundary::sub;

void ServerEndpoint::submit(const std::int32_t* words) {
  const auto word = static_cast<std::uint32_t>(words[sub::call]);
  const auto send_slot = static_cast<std::uint32_t>(words[sub::slot]);
  const std::uint32_t slot = wire::call_slot(word);
  if (!link_.is_open() || slot >= options_.call_slots ||
      calls_[slot].generation != wire::call_generation(word)) {
    return shared_.slots.release(send_slot);
  }
  ServerCall& call = calls_[slot];
  // JS may answer a part whose message it has not fetched. JS does so when no reader needs the message any
  // more.
  if (call.state == ServerState::waiting && call.bulk->held_back)
    end_call(slot, call);
  else if (call.state != ServerState::running)
    return shared_.slots.release(send_slot);  // the call has been cancelled
  shared_.flow.count_small(!call.exposed);
  const std::int32_t status = words[sub::status];
  const std::uint8_t flags = (status & boundary::kNotRun) != 0 ? wire::not_run : 0;
  const wire::Header header =
      wire::Header::of(wire::FrameType::response, word, static_cast<std::uint32_t>(status & 0xff), flags);
  const auto metadata_bytes = static_cast<std::uint32_t>(words[sub::metadata_bytes]);
  count_messages(call, send_slot, metadata_bytes, header.method);
  // The slot becomes idle before the frame is sent, because the client's next request on this slot may arrive
  // before our completion.
  set_idle(slot, call, (status & 0xff) == 0);
  link_.send_message(send_slot, header, nullptr, metadata_bytes,
                     metadata_bytes + static_cast<std::uint32_t>(words[sub::message_bytes]),
                     call.invalidate_rkey, {});
}

std::int32_t ServerEndpoint::submit_bulk(const BulkSubmission& submission) {
  const std::uint32_t slot = wire::call_slot(submission.call);
  std::uint32_t token = shared_.take_token();
  const auto result = static_cast<std::int32_t>(token);
  if (!link_.is_open() || slot >= options_.call_slots || calls_[slot].state != ServerState::running ||
      calls_[slot].generation != wire::call_generation(submission.call)) {
    shared_.slots.release(submission.slot);
    link_.emit_sent(token);
    return result;
  }
  ServerCall& call = calls_[slot];
  auto bulk = std::make_unique<ServerBulk>();
  Reason reason;
  if (!collect_gather_entries(link_, submission, bulk->gather_entries, reason))
    return -static_cast<std::int32_t>(reason);
  count_messages(call, submission.slot, submission.metadata_bytes, submission.method & 0xff);
  bulk->aligned = submission.aligned;
  bulk->total = static_cast<std::uint32_t>(
      extent_of(bulk->gather_entries, bulk->aligned,
                [](const GatherEntry& gather_entry) { return gather_entry.length; }));
  if (bulk->total == 0) {  // an empty message: only the frame is sent
    link_.emit_sent(token);
    const wire::Header header =
        wire::Header::of(wire::FrameType::response, submission.call, submission.method & 0xff);
    set_idle(slot, call, (submission.method & 0xff) == 0);
    link_.send_message(submission.slot, header, nullptr, submission.metadata_bytes, submission.metadata_bytes,
                       call.invalidate_rkey, {});
    return result;
  }
  bulk->token = token;
  bulk->slot = static_cast<std::int32_t>(submission.slot);
  bulk->status = submission.method & 0xff;
  bulk->metadata_bytes = submission.metadata_bytes;
  call.bulk = std::move(bulk);
  if (call.has_reply_buffer && call.reply_buffer.length >= call.bulk->total) {
    start_writing(slot);
  } else {
    call.bulk->asked_ns = shared_.awake_ns;
    if (call.part) {
      const std::byte* metadata = shared_.slots.payload(submission.slot);
      call.bulk->stream = wire::part_header(metadata, submission.metadata_bytes).stream;
    }
    enter(call, ServerState::asking);
    link_.control(wire::FrameType::reply_buffer_request, submission.call, call.bulk->total);
  }
  return result;
}

void ServerEndpoint::on_reply_buffer(const wire::Frame& frame) {
  const std::uint32_t slot = wire::call_slot(frame.header.call);
  ServerCall& call = calls_[slot];
  // The reply buffer and our answer to a CANCEL were on their way at the same time. The client revokes the
  // reply buffer when it gets that answer.
  if (call.generation != wire::call_generation(frame.header.call) || call.state == ServerState::idle) return;
  if (call.state != ServerState::asking) return link_.protocol_error("reply buffer that was not asked for");
  if ((frame.header.flags & wire::has_reply_buffer) == 0) {
    return refuse(
        slot, kResourceExhausted, true,
        "the client has no memory for a response of " + std::to_string(call.bulk->total) +
            " bytes because other messages and leases fill its arena; give them back earlier with "
            "leaseOf(message)?.release(), or raise its arenaBytes, messageMaxBytes or stagingBytes");
  }
  if (frame.reply_buffer.length < call.bulk->total)
    return link_.protocol_error("reply buffer smaller than requested");
  call.has_reply_buffer = call.exposed = true;
  call.reply_buffer = frame.reply_buffer;
  if (call.part) watch_.unread().granted(call.bulk->stream, shared_.awake_ns);
  const bool lasting = (frame.header.flags & wire::lasting) != 0;
  if (call.invalidate_rkey == 0 && capabilities_.windows && !lasting)
    call.invalidate_rkey = frame.reply_buffer.rkey;
  start_writing(slot);
}

void ServerEndpoint::start_writing(std::uint32_t slot) {
  ServerCall& call = calls_[slot];
  enter(call, ServerState::writing);
  transfers_.join(Bulk::write, slot);
}

/// Sends the response frame behind the WRITEs on the same queue pair, so that their bytes are in place when
/// it arrives.
void ServerEndpoint::send_written_response(std::uint32_t slot) {
  ServerCall& call = calls_[slot];
  ServerBulk& bulk = *call.bulk;
  const auto send_slot = static_cast<std::uint32_t>(std::exchange(bulk.slot, -1));
  std::byte* payload = shared_.slots.payload(send_slot);
  const wire::Written written{bulk.total, 0};
  std::memmove(payload + sizeof written, payload, bulk.metadata_bytes);
  std::memcpy(payload, &written, sizeof written);
  const wire::Header header =
      wire::Header::of(wire::FrameType::response, wire::call_word(slot, call.generation), bulk.status,
                       wire::written | (bulk.aligned ? wire::aligned : 0));
  const std::uint32_t metadata_bytes = bulk.metadata_bytes;
  auto payload_bytes = static_cast<std::uint32_t>(sizeof written) + metadata_bytes;
  payload_bytes += link_.add_number(send_slot, payload_bytes, bulk.gather_entries.front().sealed_number);
  const std::uint32_t index = keep_until_sent(slot, call);
  link_.send_message(send_slot, header, nullptr, metadata_bytes, payload_bytes, call.invalidate_rkey,
                     {Then::bulk_sent, index});
}

/// Ends the call, but keeps the memory that its WRITEs read until the frame behind them has completed.
/// Returns its index in `finishing_`.
std::uint32_t ServerEndpoint::keep_until_sent(std::uint32_t slot, ServerCall& call) {
  set_idle(slot, call, call.bulk->status == 0);
  return finishing_.keep(std::move(call.bulk));
}

void ServerEndpoint::on_bulk_sent(std::uint32_t index) {
  if (const auto sent = finishing_.take(index)) end_response(*sent);
}

/// Ends a response early. WRITEs that were already posted complete, and their memory stays allocated until
/// then. The error response is sent behind them.
void ServerEndpoint::stop_writing(std::uint32_t slot, std::uint32_t status, const std::string& text) {
  ServerCall& call = calls_[slot];
  if (call.bulk->moved == 0) return refuse(slot, status, true, text);
  call.bulk->turn.leave();
  const wire::Header header =
      wire::Header::of(wire::FrameType::response, wire::call_word(slot, call.generation), status);
  const auto send_slot = static_cast<std::uint32_t>(std::exchange(call.bulk->slot, -1));
  const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), shared_.slot_bytes));
  std::memcpy(shared_.slots.payload(send_slot), text.data(), bytes);
  link_.send_message(send_slot, header, nullptr, 0, bytes, 0, {Then::bulk_sent, keep_until_sent(slot, call)});
}

void ServerEndpoint::end_response(ServerBulk& bulk) {
  if (bulk.slot >= 0) shared_.slots.release(static_cast<std::uint32_t>(bulk.slot));
  bulk.slot = -1;
  release_gather_entries(link_, bulk.gather_entries);
  link_.emit_sent(bulk.token);
}

}  // namespace rdma_rpc::session
