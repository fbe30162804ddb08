// Handles requests that wait for arena memory. While requests wait, they hold nothing that other calls need.
// The memory that large messages of streams get before their reader needs them is limited to a small share of
// the arena. Beyond this share, such messages are announced to JS. JS fetches them when the reader reaches
// them, so that slow readers do not keep memory from others. See server_endpoint.h.
#include "session/server/server_endpoint.h"

#include <algorithm>
#include <utility>

#include "session/server/status.h"

namespace rdma_rpc::session {

namespace ev = boundary::ev;

void ServerEndpoint::wait_to_fetch(std::uint32_t slot) {
  const std::uint32_t word = wire::call_word(slot, calls_[slot].generation);
  if (!shared_.memory_waiters.push(number_, word)) {
    refuse(slot, kResourceExhausted, false,
           "too many requests wait for arena memory; raise the server's arenaBytes");
  }
}

/// Returns the error text for a caller whose deadline has passed while its request waited.
std::string ServerEndpoint::why_waiting(std::uint32_t slot) const {
  const ServerBulk& bulk = *calls_[slot].bulk;
  if (bulk.held_back) return "";
  if (beyond_quota(slot)) return "the deadline passed while a request waited: " + over_quota();
  return "the deadline passed while a request of " + std::to_string(bulk.total) +
         " bytes waited for memory of the server's arena, which other messages and leases fill; release() "
         "large messages earlier in its handlers, or raise the server's arenaBytes";
}

bool ServerEndpoint::beyond_quota(std::uint32_t slot) const {
  return shared_.arena.beyond_own_limit(calls_[slot].bulk->total, memory::Use::fetch, link_.owner());
}

std::string ServerEndpoint::over_quota() const {
  return "large requests of this session hold all of the " + std::to_string(link_.options().arena_max_bytes) +
         " bytes that one session may hold (option quotas: arenaBytesMax of the server); a handler frees "
         "them "
         "when it returns or calls release() on its message";
}

/// Moves the metadata of a request that must wait out of its receive. Otherwise waiting requests could hold
/// all receives for which the peer has credits, and the session would stop.
void ServerEndpoint::overflow_metadata(ServerBulk& bulk) {
  const std::byte* metadata =
      link_.receives().memory_of(*bulk.held_receive) + bulk.request.word[ev::metadata_offset];
  bulk.metadata.assign(metadata, metadata + bulk.request.word[ev::metadata_bytes] + bulk.inlined_bytes);
  bulk.held_receive.reset();
}

/// Copies the metadata into this overflow slot, where JS reads it.
void ServerEndpoint::restore_metadata(ServerBulk& bulk, ReceiveSlot slot) {
  const std::uint32_t offset = link_.receives().offset_of(slot);
  std::copy(bulk.metadata.begin(), bulk.metadata.end(), link_.receives().at(slot));
  bulk.held_receive = slot;
  bulk.request.set(ev::metadata_offset, offset);
  bulk.request.set(ev::receive_slot, slot.number() + 1);
}

/// Returns false when there is no arena memory or overflow slot yet.
bool ServerEndpoint::start_fetch(std::uint32_t slot, memory::Use use) {
  ServerCall& call = calls_[slot];
  ServerBulk& bulk = *call.bulk;
  const bool overflowed = !bulk.held_receive;
  const std::optional<ReceiveSlot> overflow = overflowed ? link_.receives().take_overflow() : std::nullopt;
  if (overflowed && !overflow) return false;
  bulk.block = shared_.arena.alloc(bulk.total, use, link_.owner());
  if (bulk.block == memory::kNoBlock) {
    if (overflow) link_.receives().recycle(*overflow);
    return false;
  }
  if (overflow) restore_metadata(bulk, *overflow);
  enter(call, ServerState::fetching);
  transfers_.join(Bulk::read, slot);
  return true;
}

bool ServerEndpoint::retry_memory(std::uint32_t word) {
  const std::uint32_t slot = wire::call_slot(word);
  const ServerCall& call = calls_[slot];
  return call.generation != wire::call_generation(word) || call.state != ServerState::waiting ||
         start_fetch(slot, memory::Use::fetch);
}

bool ServerEndpoint::lacks_arena(std::uint32_t word) {
  const ServerBulk& bulk = *calls_[wire::call_slot(word)].bulk;
  return (bulk.held_receive || link_.receives().has_overflow()) &&
         !shared_.arena.beyond_share(bulk.total, memory::Use::fetch, link_.owner());
}

/// Refuses the request if the system has refused memory for it. Returns false when the request waits only
/// because of our own limits.
bool ServerEndpoint::refused_by_system(std::uint32_t slot) {
  const std::string& system = shared_.arena.refusal();
  if (system.empty()) return false;
  refuse(slot, kResourceExhausted, false,
         "the server gets no memory for a request of " + std::to_string(calls_[slot].bulk->total) +
             " bytes: " + system);
  return true;
}

void ServerEndpoint::refuse_memory(std::uint32_t word) {
  const std::uint32_t slot = wire::call_slot(word);
  if (refused_by_system(slot)) return;
  if (beyond_quota(slot)) return refuse(slot, kResourceExhausted, false, over_quota());
  refuse(slot, kResourceExhausted, false,
         "the server's arena had no memory for a request of " + std::to_string(calls_[slot].bulk->total) +
             " bytes within " + std::to_string(kMemoryWaitNs / 1'000'000'000) +
             " s, because other messages and leases fill it; release() large messages earlier in its "
             "handlers, or "
             "raise the server's arenaBytes");
}

void ServerEndpoint::want(std::uint32_t word) {
  const std::uint32_t slot = wire::call_slot(word);
  const ServerCall& call = calls_[slot];
  if (call.generation != wire::call_generation(word) || call.state != ServerState::waiting) return;
  if (!std::exchange(call.bulk->held_back, false)) return;
  if (link_.has_waiters() || !start_fetch(slot, memory::Use::fetch)) wait_to_fetch(slot);
}

}  // namespace rdma_rpc::session
