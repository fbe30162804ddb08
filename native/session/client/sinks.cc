// Sinks that the server asks for: memory of the arena, at once or queued for it. The large messages of
// streams get memory ahead of their reader only within a small share of the arena; others are announced to
// JS, which asks for them when the reader has come to them, so slow readers hold no memory that anybody
// needs. See client_half.h.
#include "session/client/client_half.h"

#include <algorithm>
#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
namespace ev = boundary::ev;

void ClientHalf::on_sink_request(const wire::Header& header) {
  const std::uint32_t slot = wire::call_slot(header.call);
  ClientCall& call = calls_[slot];
  // A request that crossed our cancel: the cancel answers it.
  if (wire::call_generation(header.call) != call.generation || call.state != ClientState::active) return;
  if (call.bulk == nullptr) call.bulk = std::make_unique<ClientBulk>();
  ClientBulk& bulk = *call.bulk;
  if (bulk.deferred) return link_.protocol_error("sink request for a request that was not sent");
  if (bulk.sink_asked != 0) return link_.protocol_error("second sink request of one call");
  bulk.sink_asked = header.method;
  ++shared_.stats.sinks_asked;
  if (staging_ != nullptr) {
    // The server has read the request, or it would not know its answer. Without this two calls could wait for
    // what the other one holds.
    release_staged(call);
    bulk.pieces.clear();
    bulk.exposed = false;
  }
  const std::size_t largest =
      std::min(shared_.arena.largest(), staging_ != nullptr ? staging_->largest() : SIZE_MAX);
  const bool too_small = bulk.sink_only && (bulk.sink == memory::kNoBlock ||
                                            shared_.arena.at(bulk.sink).capacity < header.method);
  if (too_small) bulk.beyond_sink = header.method;
  if (header.method > link_.on_wire(wire::image_bytes_max(options_.max_message_bytes)) ||
      header.method > largest || too_small) {
    return link_.control(wire::FrameType::sink, header.call, 0);
  }
  const bool offered = std::exchange(bulk.sink_capacity, 0) != 0;  // from now on only the new sink counts
  if (bulk.sink != memory::kNoBlock && (offered || shared_.arena.at(bulk.sink).capacity < header.method)) {
    bulk.pieces.push_back(
        {0, 0, nullptr, bulk.sink, 0, false});  // too small: stays bound until the call ends
    bulk.sink = memory::kNoBlock;
    bulk.sink_given = false;
  }
  if (call.part && bulk.sink == memory::kNoBlock) {
    if (!link_.has_waiters())
      bulk.sink = shared_.arena.alloc(bulk.sink_asked, memory::Use::ahead, link_.owner());
    bulk.held_back = bulk.sink == memory::kNoBlock;
    if (bulk.held_back) return shared_.events.emit(part_waits(slot));
  }
  want_sink(slot);
}

/// False: no arena memory, or no room to bind, yet.
bool ClientHalf::answer_sink_request(std::uint32_t slot) {
  ClientCall& call = calls_[slot];
  ClientBulk& bulk = *call.bulk;
  if (!send_.can_bind(1)) return false;
  if (bulk.sink == memory::kNoBlock)
    bulk.sink = shared_.arena.alloc(bulk.sink_asked, memory::Use::sink, link_.owner());
  if (bulk.sink == memory::kNoBlock) return false;
  const std::uint32_t word = wire::call_word(slot, call.generation);
  const auto sink = expose_sink(bulk);
  if (!sink && staging_ != nullptr && !staging_->empty()) {
    // A queue of its own: what other sessions wait for must not hang on this one's peer.
    deferred_sinks_.push_back(word);
    return true;
  }
  if (!sink) shared_.arena.release(std::exchange(bulk.sink, memory::kNoBlock));
  link_.control(wire::FrameType::sink, word, 0, sink ? &*sink : nullptr);
  return true;
}

void ClientHalf::wait_for_memory(std::uint32_t call) {
  if (!shared_.memory_waiters.push({number_, call, true, shared_.waited_ns})) {
    link_.control(wire::FrameType::sink, call, 0);
  }
}

void ClientHalf::want_sink(std::uint32_t slot) {
  const std::uint32_t word = wire::call_word(slot, calls_[slot].generation);
  if (!deferred_sinks_.empty()) {
    deferred_sinks_.push_back(word);
  } else if ((calls_[slot].part && link_.has_waiters()) || !answer_sink_request(slot)) {
    wait_for_memory(word);
  }
}

Event ClientHalf::part_waits(std::uint32_t call) const {
  Event event = Event::of(EvKind::part_waits, number_, call);
  return event;
}

void ClientHalf::want(std::uint32_t word) {
  const std::uint32_t slot = wire::call_slot(word);
  const ClientCall& call = calls_[slot];
  if (call.state != ClientState::active || call.bulk == nullptr) return;
  if (std::exchange(call.bulk->held_back, false)) want_sink(slot);
}

bool ClientHalf::retry_memory(std::uint32_t word) {
  const std::uint32_t slot = wire::call_slot(word);
  const ClientCall& call = calls_[slot];
  return call.generation != wire::call_generation(word) || call.state != ClientState::active ||
         answer_sink_request(slot);
}

bool ClientHalf::lacks_arena(std::uint32_t word) {
  const std::uint32_t bytes = calls_[wire::call_slot(word)].bulk->sink_asked;
  return send_.can_bind(1) && !shared_.arena.beyond_share(bytes, memory::Use::sink, link_.owner());
}

std::uint32_t ClientHalf::awaited_bytes(std::uint32_t slot) {
  if (slot >= options_.call_slots) return 0;
  const ClientCall& call = calls_[slot];
  if (call.state != ClientState::active || call.bulk == nullptr || call.bulk->sink_asked == 0) return 0;
  const std::uint32_t word = wire::call_word(slot, call.generation);
  auto& waiters = shared_.memory_waiters;
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    if (waiters.at(i).session == number_ && waiters.at(i).call == word) return call.bulk->sink_asked;
  }
  return 0;
}

}  // namespace rdma_rpc::session
