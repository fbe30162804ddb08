// The memory that a call shows to the peer: request pieces to read, sinks to write, by windows, by copies in
// the staging memory, or (when the peer is trusted) as it is. See client_half.h, exposure.h.
#include "session/client/client_half.h"

#include <algorithm>
#include <bit>

namespace rdma_rpc::session {

/// The key that the peer gets for this memory. None: the device has no window left. Needs can_bind().
std::optional<std::uint32_t> ClientHalf::expose(ClientBulk& bulk, const fabric::MemoryRegion& region,
                                                std::uint64_t addr, std::uint32_t length,
                                                std::uint32_t access) {
  if (shared_.exposure == Exposure::window) {
    auto window = shared_.windows.take();
    if (window == nullptr) return std::nullopt;
    send_.bind(*window, region, addr, length, access);
    bulk.windows.push_back(std::move(window));
  }
  bulk.exposed = true;
  const std::uint32_t key =
      shared_.exposure == Exposure::window ? bulk.windows.back()->rkey() : region.rkey();
  link_.recorder().grant(access, key, length);
  return key;
}

/// Which pieces the frame itself can bring, a bit for each: what is short is not worth a window, a READ and
/// an invalidation. Not the application's own, which may want them apart, and never all of them, since a
/// message that is elsewhere has a key.
std::uint32_t ClientHalf::carried_pieces(const ClientBulk& bulk) const {
  static_assert(kPiecesMax <= 32);
  if (!options_.peer_takes_carried || bulk.pieces.size() < 2) return 0;
  std::uint32_t carried = 0;
  std::size_t bytes =
      sizeof(wire::PiecesHead) + bulk.pieces.size() * sizeof(wire::Piece) + bulk.metadata_bytes;
  for (std::size_t i = 0; i < bulk.pieces.size(); ++i) {
    const std::size_t length = bulk.pieces[i].length;
    if (bulk.pieces[i].lent || length > kCarriedBytes || bytes + length > link_.frame_room()) continue;
    carried |= 1u << i;
    bytes += length;
  }
  if (static_cast<std::size_t>(std::popcount(carried)) == bulk.pieces.size()) carried &= carried - 1;
  return carried;
}

/// Staging mode: copies the pieces of the request to where the peer may read them. False: no room now.
bool ClientHalf::stage_request(ClientBulk& bulk) {
  if (staging_ == nullptr || bulk.pieces.empty() || bulk.staged_request != memory::kNoBlock) return true;
  constexpr auto kBytes = [](const Piece& piece) { return piece.length; };
  const auto total = static_cast<std::uint32_t>(extent_of(bulk.pieces, bulk.image, kBytes));
  bulk.staged_request = staging_->take(total);
  if (bulk.staged_request == memory::kNoBlock) return false;
  const memory::Block& block = staging_->at(bulk.staged_request);
  lay_out(block.data, bulk.pieces, bulk.image, kBytes,
          [](const Piece& piece) { return reinterpret_cast<const std::byte*>(piece.addr); });
  link_.release_pieces(bulk.pieces);
  bulk.pieces.push_back(
      {reinterpret_cast<std::uint64_t>(block.data), total, block.region, memory::kNoBlock, 0, false});
  return true;
}

/// The call's staging memory can be used again: the peer has no business with it any more.
void ClientHalf::release_staged(ClientCall& call) {
  ClientBulk& bulk = *call.bulk;
  for (memory::BlockId* block : {&bulk.staged_request, &bulk.staged_sink}) {
    if (*block != memory::kNoBlock) staging_->release(*block);
    *block = memory::kNoBlock;
  }
}

/// The caller's block, or one for what this method last answered with. Without either the server asks when it
/// must.
void ClientHalf::choose_sink(ClientCall& call, memory::BlockId given) {
  ClientBulk& bulk = *call.bulk;
  if (given != memory::kNoBlock && shared_.arena.live(given)) {
    shared_.arena.retain(given);
    bulk.sink = given;
    bulk.sink_given = true;
  } else if (const std::uint32_t expected = shared_.predictor.expected(call.method, bulk.request_size);
             !link_.fits_frames(expected) &&
             expected <= link_.on_wire(wire::image_bytes_max(options_.max_message_bytes)) &&
             shared_.arena.counters().bytes_leased + expected <= shared_.arena.largest() / 2) {
    // Only a guess: were a method's answers of 64 MiB expected of all its calls, nothing would be left for
    // what is needed for sure, such as copies of requests. Those that get no sink here are asked later.
    bulk.sink =
        shared_.arena.alloc(expected, call.part ? memory::Use::ahead : memory::Use::sink, link_.owner());
    if (bulk.sink != memory::kNoBlock) ++shared_.stats.sinks_predicted;
  }
}

/// Lets the peer write to the call's sink, or to staging memory for it. None: no window, no room.
std::optional<wire::Sink> ClientHalf::expose_sink(ClientBulk& bulk) {
  const memory::Block* block = &shared_.arena.at(bulk.sink);
  auto capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      {block->capacity, link_.on_wire(wire::image_bytes_max(options_.max_message_bytes)), UINT32_MAX}));
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

}  // namespace rdma_rpc::session
