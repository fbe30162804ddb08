// See bulk_requests.h.
#include "session/client/bulk_requests.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::Processed;
using boundary::Reason;

void BulkRequests::send(std::uint32_t slot) {
  calls_[slot].bulk->deferred = true;
  deferred_.push_back(slot);
  if (deferred_.size() == 1) start_deferred();
}

void BulkRequests::start_deferred() {
  // First the reply buffers, whose calls give staging memory back when they end.
  reply_buffers_.start_deferred();
  // Removed first: a request that breaks the session must not be found here when the session ends.
  while (!deferred_.empty()) {
    const std::uint32_t slot = deferred_.front();
    deferred_.erase(deferred_.begin());
    if (start(slot)) continue;
    deferred_.insert(deferred_.begin(), slot);
    return;
  }
}

void BulkRequests::withdraw(std::uint32_t slot) {
  deferred_.erase(std::find(deferred_.begin(), deferred_.end(), slot));
  shared_.slots.release(calls_[slot].bulk->slot);
}

void BulkRequests::end_unsent() {
  for (const std::uint32_t slot : std::exchange(deferred_, {})) {
    calls_[slot].unsent = true;
    shared_.slots.release(calls_[slot].bulk->slot);
  }
}

bool BulkRequests::start(std::uint32_t slot) {
  ClientCall& call = calls_[slot];
  ClientBulk& bulk = *call.bulk;
  bulk.deferred = true;
  const auto end_unsent = [&](Reason reason) {
    shared_.slots.release(bulk.slot);
    bulk.deferred = false;
    revocation_.end(slot, Event::failed(link_.number(), slot, reason, Processed::no));
    return true;
  };
  if (any_vanished(bulk.pieces)) return end_unsent(Reason::detached);
  if (!memory_.stage_request(bulk)) {
    if (!link_.staging()->empty()) return false;
    shared_.refusal = link_.staging()->refusal();
    return end_unsent(Reason::registration);
  }
  const std::uint32_t carried = memory_.carried_pieces(bulk);
  const auto exposed =
      static_cast<std::uint32_t>(bulk.pieces.size()) - static_cast<std::uint32_t>(std::popcount(carried));
  if (!link_.send().can_bind(exposed + 1)) return false;
  wire::Header header = wire::Header::of(wire::FrameType::request, wire::call_word(slot, call.generation),
                                         call.method, call.part ? wire::part : 0, bulk.timeout_us);
  wire::Piece wire_pieces[kPiecesMax];
  wire::PiecesHead head{0, static_cast<std::uint32_t>(bulk.pieces.size())};
  for (std::uint32_t i = 0; i < head.count; ++i) {
    const Piece& piece = bulk.pieces[i];
    head.total += piece.length;
    if ((carried >> i & 1) != 0) {
      wire_pieces[i] = {0, piece.length, 0};
      continue;
    }
    const auto key =
        memory_.expose(bulk, *piece.region, piece.addr, piece.length, fabric::access_remote_read);
    // Windows ran out half way: what is bound must be revoked before the call may end.
    if (!key) {
      shared_.refusal = "the device has no memory window left";
      return end_unsent(Reason::registration);
    }
    wire_pieces[i] = {piece.addr, piece.length, *key};
    if (piece.lent) bulk.lends_request = true;
  }
  bulk.deferred = false;
  std::optional<wire::ReplyBuffer> reply_buffer;
  if (bulk.reply_buffer != memory::kNoBlock) reply_buffer = memory_.expose_reply_buffer(bulk);
  if (bulk.exposed && shared_.exposure != Exposure::window) header.flags |= wire::lasting;
  std::uint32_t payload_bytes = bulk.metadata_bytes + bulk.message_bytes;
  if (head.count != 0) {
    // The pieces do not fit the headroom of a slot: the metadata makes place for them, and they become part
    // of the payload.
    header.flags |= wire::has_pieces;
    ++shared_.stats.bulk_requests;
    if (bulk.image) header.flags |= wire::image;
    std::byte* payload = shared_.slots.payload(bulk.slot);
    const std::uint32_t pieces_bytes =
        static_cast<std::uint32_t>(sizeof head + head.count * sizeof(wire::Piece));
    std::memmove(payload + pieces_bytes, payload, bulk.metadata_bytes);
    std::memcpy(payload, &head, sizeof head);
    std::memcpy(payload + sizeof head, wire_pieces, head.count * sizeof(wire::Piece));
    payload_bytes = pieces_bytes + bulk.metadata_bytes;
    for (std::uint32_t i = 0; i < head.count; ++i) {
      if ((carried >> i & 1) == 0) continue;
      const Piece& piece = bulk.pieces[i];
      std::memcpy(payload + payload_bytes, reinterpret_cast<const std::byte*>(piece.addr), piece.length);
      payload_bytes += piece.length;
    }
    payload_bytes += link_.add_number(bulk.slot, payload_bytes, bulk.number);
  }
  link_.send_message(bulk.slot, header, reply_buffer ? &*reply_buffer : nullptr, bulk.metadata_bytes, payload_bytes, 0, {});
  return true;
}

}  // namespace rdma_rpc::session
