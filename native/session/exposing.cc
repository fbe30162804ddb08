// The memory that a call of the client half shows to the peer: request pieces to read, sinks to write, by
// windows, by copies in the staging memory, or (when the peer is trusted) as it is. See session.h,
// exposure.h.
#include <algorithm>

#include "session/session.h"

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
namespace ev = boundary::ev;

const char* to_string(Exposure exposure) {
  switch (exposure) {
    case Exposure::automatic:
      return "auto";
    case Exposure::window:
      return "window";
    case Exposure::staging:
      return "staging";
    case Exposure::shared:
      return "shared";
  }
  return "?";
}

/// The key that the peer gets for this memory. None: the device has no window left. Needs can_bind().
std::optional<std::uint32_t> Session::expose(ClientBulk& bulk, const fabric::MemoryRegion& region,
                                             std::uint64_t addr, std::uint32_t length, std::uint32_t access) {
  if (shared_.exposure == Exposure::window) {
    auto window = shared_.windows.take();
    if (window == nullptr) return std::nullopt;
    send_->bind(*window, region, addr, length, access);
    bulk.windows.push_back(std::move(window));
  }
  bulk.exposed = true;
  return shared_.exposure == Exposure::window ? bulk.windows.back()->rkey() : region.rkey();
}

/// Staging rung: copies the pieces of the request to where the peer may read them. False: no room now.
bool Session::stage_request(ClientBulk& bulk) {
  if (staging_ == nullptr || bulk.pieces.empty() || bulk.staged_request != memory::kNoBlock) return true;
  constexpr auto kBytes = [](const Piece& piece) { return piece.length; };
  const auto total = static_cast<std::uint32_t>(extent_of(bulk.pieces, bulk.image, kBytes));
  bulk.staged_request = staging_->take(total);
  if (bulk.staged_request == memory::kNoBlock) return false;
  const memory::Block& block = staging_->at(bulk.staged_request);
  lay_out(block.data, bulk.pieces, bulk.image, kBytes,
          [](const Piece& piece) { return reinterpret_cast<const std::byte*>(piece.addr); });
  release_pieces(bulk.pieces);
  bulk.pieces.push_back(
      {reinterpret_cast<std::uint64_t>(block.data), total, block.region, memory::kNoBlock, 0, false});
  return true;
}

/// The call's staging memory can be used again: the peer has no business with it any more.
void Session::release_staged(ClientCall& call) {
  ClientBulk& bulk = *call.bulk;
  for (memory::BlockId* block : {&bulk.staged_request, &bulk.staged_sink}) {
    if (*block != memory::kNoBlock) staging_->give_back(*block);
    *block = memory::kNoBlock;
  }
}

/// The caller's block, or one for what this method last answered with. Without either the server asks when it
/// must.
void Session::choose_sink(ClientCall& call, memory::BlockId given) {
  ClientBulk& bulk = *call.bulk;
  if (given != memory::kNoBlock && shared_.arena.live(given)) {
    shared_.arena.retain(given);
    bulk.sink = given;
    bulk.sink_given = true;
  } else if (const std::uint32_t expected = shared_.predictor.expected(call.method);
             expected > shared_.slot_bytes && expected <= wire::image_bytes_max(options_.max_message_bytes) &&
             shared_.arena.counters().bytes_leased + expected <= shared_.arena.largest() / 2) {
    // Only a guess: were a method's answers of 64 MiB expected of all its calls, nothing would be left for
    // what is needed for sure, such as copies of requests. Those that get no sink here are asked later.
    bulk.sink = shared_.arena.alloc(expected, call.part ? memory::Use::ahead : memory::Use::sink, owner_);
    if (bulk.sink != memory::kNoBlock) ++shared_.stats.sinks_predicted;
  }
}

/// Lets the peer write to the call's sink, or to staging memory for it. None: no window, no room.
std::optional<wire::Sink> Session::expose_sink(ClientBulk& bulk) {
  const memory::Block* block = &shared_.arena.at(bulk.sink);
  auto capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      {block->capacity, wire::image_bytes_max(options_.max_message_bytes), UINT32_MAX}));
  if (staging_ != nullptr) {
    if (bulk.sink_asked != 0) {
      capacity = bulk.sink_asked;
    } else if (capacity > staging_->largest() / kStagingShare) {
      return std::nullopt;
    }
    bulk.staged_sink = staging_->take(capacity);
    if (bulk.staged_sink == memory::kNoBlock) return std::nullopt;
    block = &staging_->at(bulk.staged_sink);
  }
  const auto addr = reinterpret_cast<std::uint64_t>(block->data);
  const auto key = expose(bulk, *block->region, addr, capacity, fabric::access_remote_write);
  if (!key) return std::nullopt;
  bulk.sink_capacity = capacity;
  if (bulk.sink_given && staging_ == nullptr) bulk.lends_sink = true;
  return wire::Sink{addr, capacity, *key};
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
  if (bulk.sink_asked != 0) return protocol_error("second sink request of one call");
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
  if (header.method > wire::image_bytes_max(options_.max_message_bytes) || header.method > largest ||
      too_small) {
    return control(wire::FrameType::sink, header.call, 0);
  }
  const bool offered = std::exchange(bulk.sink_capacity, 0) != 0;  // from now on only the new sink counts
  if (bulk.sink != memory::kNoBlock && (offered || shared_.arena.at(bulk.sink).capacity < header.method)) {
    bulk.pieces.push_back(
        {0, 0, nullptr, bulk.sink, 0, false});  // too small: stays bound until the call ends
    bulk.sink = memory::kNoBlock;
    bulk.sink_given = false;
  }
  if (call.part && bulk.sink == memory::kNoBlock) {
    if (!has_waiters()) bulk.sink = shared_.arena.alloc(bulk.sink_asked, memory::Use::ahead, owner_);
    bulk.held_back = bulk.sink == memory::kNoBlock;
    if (bulk.held_back) return shared_.events.emit(part_waits(slot));
  }
  want_sink(slot);
}

/// False: no arena memory, or no room to bind, yet.
bool Session::answer_sink_request(std::uint32_t slot) {
  ClientCall& call = client_calls_[slot];
  ClientBulk& bulk = *call.bulk;
  if (!send_->can_bind(1)) return false;
  if (bulk.sink == memory::kNoBlock)
    bulk.sink = shared_.arena.alloc(bulk.sink_asked, memory::Use::sink, owner_);
  if (bulk.sink == memory::kNoBlock) return false;
  const std::uint32_t word = wire::call_word(slot, call.generation);
  const auto sink = expose_sink(bulk);
  if (!sink && staging_ != nullptr && !staging_->empty()) {
    // A line of its own: what other sessions wait for must not hang on this one's peer.
    deferred_sinks_.push_back(word);
    return true;
  }
  if (!sink) shared_.arena.release(std::exchange(bulk.sink, memory::kNoBlock));
  control(wire::FrameType::sink, word, 0, sink ? &*sink : nullptr);
  return true;
}

bool Session::open_staging(std::string* error) {
  const bool exposes = options_.client && shared_.exposure == Exposure::staging;
  const bool lands =
      !options_.client && shared_.exposure != Exposure::shared && capabilities_.read_sink_needs_remote_write;
  if (!exposes && !lands) return true;
  std::size_t bytes = options_.staging_bytes;
  if (bytes == 0) {
    const std::uint32_t largest = std::max(options_.max_message_bytes, options_.peer_max_message_bytes);
    bytes = std::max<std::size_t>(kStagingBytesLeast, wire::image_bytes_max(largest));
  }
  if (bytes < shared_.slot_bytes) {
    *error = "stagingBytes (" + std::to_string(bytes) + ") must be at least slotBytes (" +
             std::to_string(shared_.slot_bytes) + ")";
    return false;
  }
  const std::uint32_t rights = fabric::access_remote_write | (exposes ? fabric::access_remote_read : 0u);
  staging_ = std::make_unique<Staging>(shared_.device, bytes, rights);
  return true;
}

}  // namespace rdma_rpc::session
