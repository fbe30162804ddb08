// See reply_buffers.h.
#include "session/client/reply_buffers.h"

#include <algorithm>
#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;

void ReplyBuffers::on_request(const wire::Header& header) {
  const std::uint32_t slot = wire::call_slot(header.call);
  ClientCall& call = calls_[slot];
  // The peer's request for a reply buffer and our CANCEL were on their way at the same time. The CANCEL
  // answers the request.
  if (wire::call_generation(header.call) != call.generation || call.state != ClientState::active) return;
  if (call.bulk == nullptr) call.bulk = std::make_unique<ClientBulk>();
  ClientBulk& bulk = *call.bulk;
  const Staging* staging = link_.staging();
  if (bulk.deferred) return link_.protocol_error("reply buffer request for a request that was not sent");
  if (bulk.reply_buffer_asked != 0) return link_.protocol_error("second reply buffer request of one call");
  bulk.reply_buffer_asked = header.method;
  ++shared_.stats.reply_buffers_asked;
  if (staging != nullptr) {
    // The server has a response, so it has read the request. If the request's memory were not released here,
    // two calls could each wait for memory that the other call uses.
    memory_.release_staged(bulk);
    bulk.gather_entries.clear();
    bulk.exposed = false;
  }
  const std::size_t largest = std::min(shared_.arena.largest() - memory_.request_bytes(bulk),
                                       staging != nullptr ? staging->largest() : SIZE_MAX);
  const bool too_small =
      bulk.reply_buffer_only &&
      (bulk.reply_buffer == memory::kNoBlock || shared_.arena.at(bulk.reply_buffer).capacity < header.method);
  if (too_small) bulk.refused_bytes = header.method;
  if (header.method > link_.on_wire(wire::aligned_bytes_max(link_.options().max_message_bytes)) ||
      header.method > largest || too_small) {
    return refuse(header.call);
  }
  // From now on the server may write only to the new reply buffer.
  const bool offered = std::exchange(bulk.reply_buffer_capacity, 0) != 0;
  if (bulk.reply_buffer != memory::kNoBlock &&
      (offered || shared_.arena.at(bulk.reply_buffer).capacity < header.method)) {
    bulk.gather_entries.push_back(
        // the buffer is too small, but it stays bound until the call ends
        {0, 0, nullptr, bulk.reply_buffer, 0, false});
    bulk.reply_buffer = memory::kNoBlock;
    bulk.reply_buffer_given = false;
  }
  if (call.part && bulk.reply_buffer == memory::kNoBlock) {
    if (!link_.has_waiters())
      bulk.reply_buffer = shared_.arena.alloc(bulk.reply_buffer_asked, memory::Use::ahead, link_.owner());
    bulk.held_back = bulk.reply_buffer == memory::kNoBlock;
    if (bulk.held_back) return shared_.events.emit(Event::of(EvKind::part_waits, link_.number(), slot));
  }
  grant_or_wait(slot);
}

bool ReplyBuffers::answer(std::uint32_t slot) {
  ClientCall& call = calls_[slot];
  ClientBulk& bulk = *call.bulk;
  if (!link_.send().can_bind(1)) return false;
  if (bulk.reply_buffer == memory::kNoBlock)
    bulk.reply_buffer =
        shared_.arena.alloc(bulk.reply_buffer_asked, memory::Use::reply_buffer, link_.owner());
  if (bulk.reply_buffer == memory::kNoBlock) return false;
  const std::uint32_t word = wire::call_word(slot, call.generation);
  const auto reply_buffer = memory_.expose_reply_buffer(bulk);
  const Staging* staging = link_.staging();
  if (!reply_buffer && staging != nullptr && !staging->empty()) {
    // The call is queued in this session and not in `memory_waiters`: other sessions must not wait for this
    // session's peer, which decides when its staging memory is free.
    deferred_.push_back(word);
    return true;
  }
  if (!reply_buffer) shared_.arena.release(std::exchange(bulk.reply_buffer, memory::kNoBlock));
  link_.control(wire::FrameType::reply_buffer, word, 0, reply_buffer ? &*reply_buffer : nullptr);
  return true;
}

void ReplyBuffers::start_deferred() {
  // The call is removed first, so that a call that breaks the session is not found here when the session
  // ends.
  while (!deferred_.empty()) {
    const std::uint32_t word = deferred_.front();
    deferred_.erase(deferred_.begin());
    const std::size_t others = deferred_.size();
    if (!retry(word)) {
      wait_for_memory(word);
    } else if (deferred_.size() != others) {  // answer() has queued the call again at the end: move it back
      deferred_.pop_back();
      deferred_.insert(deferred_.begin(), word);
      break;
    }
  }
}

void ReplyBuffers::wait_for_memory(std::uint32_t call) {
  if (!shared_.memory_waiters.push(link_.number(), call)) refuse(call);
}

void ReplyBuffers::refuse(std::uint32_t word) {
  ClientBulk& bulk = *calls_[wire::call_slot(word)].bulk;
  // The server learns only that no memory is available. The caller learns the cause when its own request uses
  // the memory.
  if (memory_.request_bytes(bulk) > shared_.arena.counters().bytes_leased / 2)
    bulk.refused_bytes = bulk.reply_buffer_asked;
  link_.control(wire::FrameType::reply_buffer, word, 0);
}

void ReplyBuffers::grant_or_wait(std::uint32_t slot) {
  const std::uint32_t word = wire::call_word(slot, calls_[slot].generation);
  if (!deferred_.empty()) {
    deferred_.push_back(word);
  } else if ((calls_[slot].part && link_.has_waiters()) || !answer(slot)) {
    wait_for_memory(word);
  }
}

void ReplyBuffers::want(std::uint32_t word) {
  const std::uint32_t slot = wire::call_slot(word);
  const ClientCall& call = calls_[slot];
  if (call.state != ClientState::active || call.bulk == nullptr) return;
  if (std::exchange(call.bulk->held_back, false)) grant_or_wait(slot);
}

bool ReplyBuffers::retry(std::uint32_t word) {
  const std::uint32_t slot = wire::call_slot(word);
  const ClientCall& call = calls_[slot];
  return call.generation != wire::call_generation(word) || call.state != ClientState::active || answer(slot);
}

bool ReplyBuffers::lacks_arena(std::uint32_t word) {
  const std::uint32_t bytes = calls_[wire::call_slot(word)].bulk->reply_buffer_asked;
  return link_.send().can_bind(1) &&
         !shared_.arena.beyond_share(bytes, memory::Use::reply_buffer, link_.owner());
}

std::uint32_t ReplyBuffers::awaited_bytes(std::uint32_t slot) {
  if (slot >= link_.options().call_slots) return 0;
  const ClientCall& call = calls_[slot];
  if (call.state != ClientState::active || call.bulk == nullptr || call.bulk->reply_buffer_asked == 0)
    return 0;
  const std::uint32_t word = wire::call_word(slot, call.generation);
  return shared_.memory_waiters.has(link_.number(), word) ? call.bulk->reply_buffer_asked : 0;
}

}  // namespace rdma_rpc::session
