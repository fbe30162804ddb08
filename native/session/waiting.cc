// Waiting for arena memory: who is in the line that all sessions of a context share, what a call holds
// meanwhile (nothing), and the large messages of streams, which get memory ahead of their reader only within
// a small share of the arena. Others are announced to JS, which asks for them when the reader has come to
// them: so slow readers hold no memory that anybody needs. See session.h.
#include <algorithm>

#include "session/session.h"

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
namespace ev = boundary::ev;

namespace {
constexpr std::uint32_t kResourceExhausted = 8;
}  // namespace

// --- the line

/// Calls of this session wait for arena memory no longer: one of them, or (without a word) all.
void Session::forget_waiters(std::optional<std::uint32_t> call) {
  shared_.memory_waiters.erase_if([&](const Shared::Waiter& waiter) {
    return waiter.session == number_ && (!call || waiter.call == *call);
  });
}

/// Calls of this session wait for arena memory. A part of a stream must then wait too, since parts are used
/// in order: one that came later could hold, for ever, the memory that an earlier one waits for.
bool Session::has_waiters() {
  auto& waiters = shared_.memory_waiters;
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    if (waiters.at(i).session == number_) return true;
  }
  return false;
}

void Session::wait_for_memory(std::uint32_t call) {
  if (!shared_.memory_waiters.push({number_, call, true, shared_.waited_ns})) {
    control(wire::FrameType::sink, call, 0);
  }
}

// --- requests of the server half

void Session::wait_to_fetch(std::uint32_t slot) {
  const std::uint32_t word = wire::call_word(slot, server_calls_[slot].generation);
  if (!shared_.memory_waiters.push({number_, word, false, shared_.waited_ns})) {
    refuse(slot, kResourceExhausted, false,
           "too many requests wait for arena memory; raise the server's arenaBytes");
  }
}

/// For a caller whose deadline has passed meanwhile.
std::string Session::why_waiting(std::uint32_t slot) const {
  const ServerBulk& bulk = *server_calls_[slot].bulk;
  if (bulk.held_back) return "";
  return "the deadline passed while a request of " + std::to_string(bulk.total) +
         " bytes waited for memory of the server's arena: its handlers keep large messages, or leases of "
         "them (release() gives one back); or raise the server's arenaBytes";
}

/// A request waits without its receive: those that wait could otherwise hold all that the peer has credits
/// for, and nothing would come through any more.
void Session::park(ServerBulk& bulk) {
  const std::byte* metadata = receive_slab() + bulk.request.word[ev::metadata_offset];
  bulk.metadata.assign(metadata, metadata + bulk.request.word[ev::metadata_bytes]);
  bulk.held_receive = -1;
}

/// Its metadata goes where JS looks for it. Needs a free slot there.
void Session::unpark(ServerBulk& bulk) {
  const std::uint32_t slot = parking_.back();
  parking_.pop_back();
  const std::uint32_t offset = slot * receive_stride_;
  std::copy(bulk.metadata.begin(), bulk.metadata.end(), receive_slab() + offset);
  bulk.held_receive = static_cast<std::int32_t>(slot);
  bulk.request.word[ev::metadata_offset] = static_cast<std::int32_t>(offset);
  bulk.request.word[ev::reserved] = static_cast<std::int32_t>(slot + 1);
}

/// False: no arena memory yet.
bool Session::start_fetch(std::uint32_t slot, memory::Use use) {
  ServerCall& call = server_calls_[slot];
  ServerBulk& bulk = *call.bulk;
  const bool parked = bulk.held_receive < 0;
  if (parked && parking_.empty()) return false;
  bulk.block = shared_.arena.alloc(bulk.total, use, owner_);
  if (bulk.block == memory::kNoBlock) return false;
  if (parked) unpark(bulk);
  call.state = ServerState::fetching;
  transfers_.push(slot);
  return true;
}

bool Session::retry_memory(const Shared::Waiter& waiter) {
  if (!open()) return true;
  const std::uint32_t slot = wire::call_slot(waiter.call), generation = wire::call_generation(waiter.call);
  if (waiter.client) {
    const ClientCall& call = client_calls_[slot];
    return call.generation != generation || call.state != ClientState::active || answer_sink_request(slot);
  }
  const ServerCall& call = server_calls_[slot];
  return call.generation != generation || call.state != ServerState::waiting ||
         start_fetch(slot, memory::Use::fetch);
}

/// Asked when retry_memory() has found none: what it lacks is memory of the arena, which all wait for, and
/// not something of this session alone (its share, a place for metadata, room to bind).
bool Session::lacks_arena(const Shared::Waiter& waiter) {
  const std::uint32_t slot = wire::call_slot(waiter.call);
  if (waiter.client) {
    const std::uint32_t bytes = client_calls_[slot].bulk->sink_asked;
    return send_->can_bind(1) && !shared_.arena.beyond_share(bytes, memory::Use::sink, owner_);
  }
  const ServerBulk& bulk = *server_calls_[slot].bulk;
  return (bulk.held_receive >= 0 || !parking_.empty()) &&
         !shared_.arena.beyond_share(bulk.total, memory::Use::fetch, owner_);
}

std::uint32_t Session::awaited_bytes(std::uint32_t slot) {
  if (!options_.client || slot >= options_.call_slots) return 0;
  const ClientCall& call = client_calls_[slot];
  if (call.state != ClientState::active || call.bulk == nullptr || call.bulk->sink_asked == 0) return 0;
  const std::uint32_t word = wire::call_word(slot, call.generation);
  auto& waiters = shared_.memory_waiters;
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    if (waiters.at(i).session == number_ && waiters.at(i).call == word) return call.bulk->sink_asked;
  }
  return 0;
}

/// False: it is a limit of ours that the request waits for.
bool Session::refused_by_system(std::uint32_t slot) {
  const std::string& system = shared_.arena.refusal();
  if (system.empty()) return false;
  refuse(slot, kResourceExhausted, false,
         "the server gets no memory for a request of " + std::to_string(server_calls_[slot].bulk->total) +
             " bytes: " + system);
  return true;
}

void Session::refuse_memory(const Shared::Waiter& waiter) {
  if (waiter.client) return control(wire::FrameType::sink, waiter.call, 0);
  const std::uint32_t slot = wire::call_slot(waiter.call);
  if (refused_by_system(slot)) return;
  refuse(
      slot, kResourceExhausted, false,
      "no arena memory came free for a request of " + std::to_string(server_calls_[slot].bulk->total) +
          " bytes within " + std::to_string(kMemoryWaitNs / 1'000'000'000) +
          " s: its handlers keep large messages, or leases of them (release() gives one back); or raise the "
          "server's arenaBytes");
}

// --- large messages of streams

void Session::want_sink(std::uint32_t slot) {
  const std::uint32_t word = wire::call_word(slot, client_calls_[slot].generation);
  if (!deferred_sinks_.empty()) {
    deferred_sinks_.push_back(word);
  } else if ((client_calls_[slot].part && has_waiters()) || !answer_sink_request(slot)) {
    wait_for_memory(word);
  }
}

Event Session::part_waits(std::uint32_t call) const {
  Event event;
  event.word[ev::kind] = static_cast<std::int32_t>(EvKind::part_waits);
  event.word[ev::session] = static_cast<std::int32_t>(number_);
  event.word[ev::call] = static_cast<std::int32_t>(call);
  return event;
}

void Session::want(std::uint32_t word) {
  if (!open() || wire::call_slot(word) >= options_.call_slots) return;
  const std::uint32_t slot = wire::call_slot(word);
  if (options_.client) {
    const ClientCall& call = client_calls_[slot];
    if (call.state != ClientState::active || call.bulk == nullptr) return;
    if (std::exchange(call.bulk->held_back, false)) want_sink(slot);
    return;
  }
  const ServerCall& call = server_calls_[slot];
  if (call.generation != wire::call_generation(word) || call.state != ServerState::waiting) return;
  if (!std::exchange(call.bulk->held_back, false)) return;
  if (has_waiters() || !start_fetch(slot, memory::Use::fetch)) wait_to_fetch(slot);
}

}  // namespace rdma_rpc::session
