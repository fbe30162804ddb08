// The memory of a bulk message: blocks of the arena and registered buffers held while it is in use, or one
// copy when that cannot be. Both halves of a session use it, see link.h.
#include <algorithm>
#include <cstring>

#include "session/link/link.h"

namespace rdma_rpc::session {

using boundary::Reason;

namespace {
constexpr auto kGivenBytes = [](const GivenPiece& given) { return given.bytes; };
constexpr auto kGivenData = [](const GivenPiece& given) { return given.data; };
}  // namespace

bool Link::collect_pieces(const BulkSubmission& submission, std::vector<Piece>& pieces, Reason& reason) {
  // The staging memory gets a copy when its turn has come; until then the pieces only must stay there.
  const bool staged = options_.client && staging_ != nullptr;
  const std::uint64_t total = extent_of(submission.pieces, submission.image, kGivenBytes);
  // The list of a request's pieces shares the slot with the metadata; one always fits (send_slots.h).
  const std::size_t spare = shared_.slot_bytes - std::min(submission.metadata_bytes, shared_.slot_bytes);
  const std::size_t listed = options_.client ? 1 + spare / sizeof(wire::Piece) : kPiecesMax;
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
    if (given.key != 0 && options_.client && !staged && !capabilities_.exposes_any_memory) copy = true;
    if (given.presence != nullptr && capabilities_.reads_memory_late) copy = true;
    // Nothing tells whether its memory is still there later, so it cannot wait for staging memory either.
    if (given.copied) copies = true;
  }
  // Where it can go from where it is, what is left of the arena is for messages that cannot.
  const bool must_copy = copy || sealing_ != nullptr || capabilities_.reads_memory_late;
  if (copies && !must_copy && shared_.arena.counters().bytes_leased + total > shared_.arena.largest() / 2) {
    shared_.short_bytes = static_cast<std::int32_t>(total);
    shared_.refusal.clear();
    reason = Reason::no_memory;
    return false;
  }
  // Sealed in a copy of our own, so that nothing that the peer can reach is ever readable.
  if (copies || sealing_ != nullptr) copy = true;
  const std::uint64_t allowed = submission.image ? wire::image_bytes_max(options_.peer_max_message_bytes)
                                                 : options_.peer_max_message_bytes;
  if (total > allowed || on_wire(total) > UINT32_MAX) {
    reason = Reason::too_large;
    return false;
  }
  if (staged && on_wire(total) > staging_->largest()) {
    reason = Reason::staging;
    return false;
  }
  // All that take long at once, and then the message is submitted again.
  bool registering = false;
  for (const GivenPiece& given : submission.pieces) {
    if (copy || staged || given.key == 0 || given.bytes == 0) continue;
    registering |= shared_.mr_cache.awaits(given.key, given.buffer_data, given.buffer_bytes, shared_.now_ns,
                                           given.presence);
  }
  if (registering) {
    shared_.refusal.clear();
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
      copy = !collect_text(submission, given, text, pieces);
      continue;
    }
    Piece piece{reinterpret_cast<std::uint64_t>(given.data),
                static_cast<std::uint32_t>(given.bytes),
                nullptr,
                memory::kNoBlock,
                0,
                given.lent,
                given.presence};
    piece.block = shared_.arena.find(given.data, given.bytes);
    if (piece.block != memory::kNoBlock) {
      shared_.arena.retain(piece.block);
      piece.region = shared_.arena.at(piece.block).region;
    } else if (given.key != 0 && !staged) {
      piece.region = shared_.mr_cache.acquire(given.key, given.buffer_data, given.buffer_bytes,
                                              shared_.now_ns, &why, given.presence);
      piece.mr_key = piece.region != nullptr ? given.key : 0;
    }
    if (piece.region == nullptr && !staged) {
      copy = true;  // the registration budget is full: the arena's may not be
      break;
    }
    pieces.push_back(piece);
  }
  if (!copy) return true;
  release_pieces(pieces);
  if (stage(submission, total, pieces)) return true;
  reason = Reason::no_memory;
  // The copy was the second best: with room for the text alone the rest would have gone from where it is.
  if (text.refused != 0) shared_.short_bytes = static_cast<std::int32_t>(text.refused);
  shared_.refusal = shared_.arena.refusal().empty() ? why : shared_.arena.refusal();
  return false;
}

/// A piece of the text room: the first one brings a block for all of them. False: no room.
bool Link::collect_text(const BulkSubmission& submission, const GivenPiece& given, Text& text,
                        std::vector<Piece>& pieces) {
  if (text.block == memory::kNoBlock) {
    std::size_t bytes = 0;
    for (const GivenPiece& each : submission.pieces) bytes += each.text ? each.bytes : 0;
    text.block = shared_.arena.alloc(bytes, submission.use, owner_);
    if (text.block == memory::kNoBlock) {
      text.refused = bytes;
      return false;
    }
  } else {
    shared_.arena.retain(text.block);
  }
  const memory::Block& block = shared_.arena.at(text.block);
  std::memcpy(block.data + text.bytes, given.data, given.bytes);
  pieces.push_back({reinterpret_cast<std::uint64_t>(block.data + text.bytes),
                    static_cast<std::uint32_t>(given.bytes), block.region, text.block});
  text.bytes += given.bytes;
  return true;
}

bool Link::stage(const BulkSubmission& submission, std::uint64_t extent, std::vector<Piece>& pieces) {
  if (extent == 0) return true;
  const auto bytes = static_cast<std::uint32_t>(on_wire(extent));
  const memory::BlockId block = shared_.arena.alloc(bytes, submission.use, owner_);
  if (block == memory::kNoBlock) {
    shared_.short_bytes = static_cast<std::int32_t>(bytes);
    return false;
  }
  const memory::Block& memory = shared_.arena.at(block);
  lay_out(memory.data, submission.pieces, submission.image, kGivenBytes, kGivenData);
  pieces.push_back({reinterpret_cast<std::uint64_t>(memory.data), bytes, memory.region, block, 0, false});
  if (sealing_ != nullptr)
    pieces.back().sealed_number = sealing_->seal_bulk(memory.data, static_cast<std::uint32_t>(extent));
  return true;
}

bool Link::copy_pieces(const BulkSubmission& submission, std::vector<Piece>& pieces) {
  const std::uint64_t extent = extent_of(submission.pieces, submission.image, kGivenBytes);
  if (extent > shared_.arena.largest()) return true;
  std::vector<Piece> copy;
  if (!stage(submission, extent, copy)) return false;
  release_pieces(pieces);
  pieces = std::move(copy);
  return true;
}

std::uint32_t Link::open_bulk(std::byte* data, std::uint32_t on_wire, std::uint64_t number, bool shared) {
  const std::uint32_t plain = plain_bytes(on_wire);
  return plain != 0 && sealing_->open_bulk(data, plain, number, shared) ? plain : 0;
}

std::uint32_t Link::add_number(std::uint32_t slot, std::uint32_t bytes, std::uint64_t number) {
  if (sealing_ == nullptr) return 0;
  std::memcpy(shared_.slots.payload(slot) + bytes, &number, kBulkNumberBytes);
  return kBulkNumberBytes;
}

void Link::release_pieces(std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    if (piece.block != memory::kNoBlock) shared_.arena.release(piece.block);
    if (piece.mr_key != 0) shared_.mr_cache.unpin(piece.mr_key, shared_.now_ns);
  }
  pieces.clear();
}

}  // namespace rdma_rpc::session
