// See bulk_memory.h.
#include "session/link/bulk_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rdma_rpc::session {

using boundary::Reason;

namespace {
constexpr auto kGivenBytes = [](const GivenPiece& given) { return given.bytes; };
constexpr auto kGivenData = [](const GivenPiece& given) { return given.data; };

/// What has been copied out of the encode scratch buffer for one message.
struct Text {
  memory::BlockId block = memory::kNoBlock;
  std::size_t bytes = 0;
  std::size_t refused = 0;  ///< bytes that the arena was asked for in vain
};

/// A piece of the encode scratch buffer: the first one brings a block for all of them. Returns false when
/// there is no room.
bool collect_text(Link& link, const BulkSubmission& submission, const GivenPiece& given, Text& text,
                  std::vector<Piece>& pieces) {
  Shared& shared = link.shared();
  if (text.block == memory::kNoBlock) {
    std::size_t bytes = 0;
    for (const GivenPiece& each : submission.pieces) bytes += each.text ? each.bytes : 0;
    text.block = shared.arena.alloc(bytes, submission.use, link.owner());
    if (text.block == memory::kNoBlock) {
      text.refused = bytes;
      return false;
    }
  } else {
    shared.arena.retain(text.block);
  }
  const memory::Block& block = shared.arena.at(text.block);
  std::memcpy(block.data + text.bytes, given.data, given.bytes);
  pieces.push_back({reinterpret_cast<std::uint64_t>(block.data + text.bytes),
                    static_cast<std::uint32_t>(given.bytes), block.region, text.block});
  text.bytes += given.bytes;
  return true;
}

/// Copies the message to a block of the arena. Returns false when there is none.
bool stage(Link& link, const BulkSubmission& submission, std::uint64_t extent, std::vector<Piece>& pieces) {
  Shared& shared = link.shared();
  if (extent == 0) return true;
  const auto bytes = static_cast<std::uint32_t>(link.on_wire(extent));
  const memory::BlockId block = shared.arena.alloc(bytes, submission.use, link.owner());
  if (block == memory::kNoBlock) {
    shared.short_bytes = static_cast<std::int32_t>(bytes);
    return false;
  }
  const memory::Block& memory = shared.arena.at(block);
  lay_out(memory.data, submission.pieces, submission.image, kGivenBytes, kGivenData);
  pieces.push_back({reinterpret_cast<std::uint64_t>(memory.data), bytes, memory.region, block, 0, false});
  if (link.sealing() != nullptr)
    pieces.back().sealed_number = link.sealing()->seal_bulk(memory.data, static_cast<std::uint32_t>(extent));
  return true;
}

}  // namespace

bool collect_pieces(Link& link, const BulkSubmission& submission, std::vector<Piece>& pieces,
                    Reason& reason) {
  Shared& shared = link.shared();
  // The staging memory gets a copy when its turn has come; until then the pieces only must stay there.
  const bool staged = link.options().client && link.staging() != nullptr;
  const std::uint64_t total = extent_of(submission.pieces, submission.image, kGivenBytes);
  // The list of a request's pieces shares the slot with the metadata; one always fits (send_slots.h).
  const std::size_t spare = shared.slot_bytes - std::min(submission.metadata_bytes, shared.slot_bytes);
  const std::size_t listed = link.options().client ? 1 + spare / sizeof(wire::Piece) : kPiecesMax;
  bool copies = false;
  bool copy = submission.pieces.size() > std::min<std::size_t>(kPiecesMax, listed) && !staged;
  for (const GivenPiece& given : submission.pieces) {
    // Detached: its length is told to the peer, and it had one when it was encoded. (Node 20's V8 gives
    // compiled code the old length of a detached view, once that code has seen a resizable one.)
    if ((given.key != 0 || given.copied) && given.bytes == 0 && given.buffer_data == nullptr) {
      reason = Reason::detached;
      return false;
    }
    // Registering what the fabric cannot expose would fail at the peer; a copy in the arena always works.
    if (given.key != 0 && link.options().client && !staged && !link.capabilities().exposes_any_memory)
      copy = true;
    if (given.presence != nullptr && link.capabilities().reads_memory_late) copy = true;
    // Nothing tells whether its memory is still there later, so it cannot wait for staging memory either.
    if (given.copied) copies = true;
  }
  // Where it can go from where it is, what is left of the arena is for messages that cannot.
  const bool must_copy = copy || link.sealing() != nullptr || link.capabilities().reads_memory_late;
  if (copies && !must_copy && shared.arena.counters().bytes_leased + total > shared.arena.largest() / 2) {
    shared.short_bytes = static_cast<std::int32_t>(total);
    shared.refusal.clear();
    reason = Reason::no_memory;
    return false;
  }
  // Sealed in a copy of our own, so that nothing that the peer can reach is ever readable.
  if (copies || link.sealing() != nullptr) copy = true;
  const std::uint64_t allowed = submission.image
                                    ? wire::image_bytes_max(link.options().peer_max_message_bytes)
                                    : link.options().peer_max_message_bytes;
  if (total > allowed || link.on_wire(total) > UINT32_MAX) {
    reason = Reason::too_large;
    return false;
  }
  if (staged && link.on_wire(total) > link.staging()->largest()) {
    reason = Reason::staging;
    return false;
  }
  // All that take long at once, and then the message is submitted again.
  bool registering = false;
  for (const GivenPiece& given : submission.pieces) {
    if (copy || staged || given.key == 0 || given.bytes == 0) continue;
    registering |= shared.mr_cache.awaits(given.key, given.buffer_data, given.buffer_bytes, shared.now_ns,
                                          given.presence);
  }
  if (registering) {
    shared.refusal.clear();
    reason = Reason::registering;
    return false;
  }
  std::string why;
  Text text;
  pieces.reserve(submission.pieces.size());
  for (const GivenPiece& given : submission.pieces) {
    if (copy) break;
    if (given.bytes == 0) continue;
    if (given.text) {
      copy = !collect_text(link, submission, given, text, pieces);
      continue;
    }
    Piece piece{reinterpret_cast<std::uint64_t>(given.data),
                static_cast<std::uint32_t>(given.bytes),
                nullptr,
                memory::kNoBlock,
                0,
                given.lent,
                given.presence};
    piece.block = shared.arena.find(given.data, given.bytes);
    if (piece.block != memory::kNoBlock) {
      shared.arena.retain(piece.block);
      piece.region = shared.arena.at(piece.block).region;
    } else if (given.key != 0 && !staged) {
      piece.region = shared.mr_cache.acquire(given.key, given.buffer_data, given.buffer_bytes, shared.now_ns,
                                             &why, given.presence);
      piece.mr_key = piece.region != nullptr ? given.key : 0;
    }
    if (piece.region == nullptr && !staged) {
      copy = true;  // the registration budget is full: the arena's may not be
      break;
    }
    pieces.push_back(piece);
  }
  if (!copy) return true;
  release_pieces(link, pieces);
  if (stage(link, submission, total, pieces)) return true;
  reason = Reason::no_memory;
  // The copy was the second best: with room for the text alone the rest would have gone from where it is.
  if (text.refused != 0) shared.short_bytes = static_cast<std::int32_t>(text.refused);
  shared.refusal = shared.arena.refusal().empty() ? why : shared.arena.refusal();
  return false;
}

bool copy_pieces(Link& link, const BulkSubmission& submission, std::vector<Piece>& pieces) {
  Shared& shared = link.shared();
  const std::uint64_t extent = extent_of(submission.pieces, submission.image, kGivenBytes);
  if (extent > shared.arena.largest()) return true;
  std::vector<Piece> copy;
  if (!stage(link, submission, extent, copy)) return false;
  release_pieces(link, pieces);
  pieces = std::move(copy);
  return true;
}

void release_pieces(Link& link, std::vector<Piece>& pieces) {
  Shared& shared = link.shared();
  for (const Piece& piece : pieces) {
    if (piece.block != memory::kNoBlock) shared.arena.release(piece.block);
    if (piece.mr_key != 0) shared.mr_cache.unpin(piece.mr_key, shared.now_ns);
  }
  pieces.clear();
}

}  // namespace rdma_rpc::session
