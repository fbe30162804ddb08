// See transfers.h.
#include "session/server/transfers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "session/server/status.h"

namespace rdma_rpc::session {

namespace ev = boundary::ev;

void Transfers::join(Bulk kind, std::uint32_t slot) {
  const bool reads = kind == Bulk::read;
  (reads ? reading_calls_ : writing_calls_).join(calls_[slot].bulk->turn, slot);
  shared_.flow.sessions(kind).join(reads ? reading_ : writing_, link_.number());
}

Moved Transfers::move(Bulk kind, std::int64_t& credit) {
  FairQueue& calls = kind == Bulk::read ? reading_calls_ : writing_calls_;
  Moved ended = Moved::all;
  calls.serve([&](std::uint32_t slot, std::int64_t& call_credit) {
    if (!link_.is_open()) return Moved::halt;
    Turn turn{call_credit, credit};
    const Moved moved = kind == Bulk::read ? move_read(slot, turn) : move_write(slot, turn);
    ended = turn.session_ended;
    return moved;
  });
  return calls.empty() ? Moved::all : ended;
}

/// Returns Moved::all when the call may post one more work request, otherwise the reason why it may not.
Moved Transfers::may_post(Turn& turn) const {
  if (turn.call <= 0) return Moved::share;
  if (turn.session <= 0) return turn.halt(Moved::share);
  if (shared_.flow.turn_is_over()) return turn.halt(Moved::halt);
  if (!link_.send().room(1)) return turn.halt(Moved::stuck);
  return Moved::all;
}

void Transfers::charge(Turn& turn, std::uint32_t bytes) {
  turn.call -= bytes;
  turn.session -= bytes;
  shared_.flow.moved(bytes);
}

/// Prepares READs of the call. Returns Moved::all when all of them are prepared.
Moved Transfers::move_read(std::uint32_t slot, Turn& turn) {
  ServerBulk& bulk = *calls_[slot].bulk;
  const memory::Block& block = shared_.arena.at(bulk.block);
  const fabric::Capabilities& can = link_.capabilities();
  Staging* const staging = link_.staging();
  while (bulk.moved < bulk.total) {
    const wire::GatherEntry& gather_entry = bulk.remote[bulk.gather_entry];
    if (gather_entry.inlined()) {
      copy_inlined(bulk, block.data);
      continue;
    }
    if (const Moved moved = may_post(turn); moved != Moved::all) return moved;
    if (watch_.reads().count() >= can.max_rd_atomic) return turn.halt(Moved::stuck);
    if (bulk.gather_entry_offset == 0) {
      const std::string why =
          link_.queue_pair().reach(gather_entry.rkey, gather_entry.addr, gather_entry.length);
      if (!why.empty()) {
        owner_.stop_fetching(slot, kResourceExhausted,
                             "the server cannot reach the memory of the request: " + why);
        return Moved::all;
      }
    }
    std::uint32_t chunk = shared_.flow.chunk(can.max_msg_bytes);
    if (staging != nullptr)
      chunk = static_cast<std::uint32_t>(std::min<std::size_t>(chunk, staging->largest()));
    const std::uint64_t from = gather_entry.addr + bulk.gather_entry_offset;
    const std::uint32_t wanted = std::min(gather_entry.length - bulk.gather_entry_offset, chunk);
    const std::uint32_t bytes = can.read_bytes(from, watch_.reads().may_begin(wanted));
    if (bytes == 0) return turn.halt(Moved::stuck);
    fabric::Sge into{reinterpret_cast<std::uint64_t>(block.data) + bulk.moved, bytes, block.region->lkey()};
    if (staging != nullptr) {
      const memory::BlockId range = staging->take(bytes);
      if (range == memory::kNoBlock && !staging->empty()) return turn.halt(Moved::stuck);
      if (range == memory::kNoBlock) {
        owner_.stop_fetching(slot, kResourceExhausted,
                             "the server has no staging memory: " + staging->refusal());
        return Moved::all;
      }
      const memory::Block& landing = staging->at(range);
      landings_.push_back({range, block.data + bulk.moved, bytes});
      into = {reinterpret_cast<std::uint64_t>(landing.data), bytes, landing.region->lkey()};
    }
    link_.send().read(into, from, gather_entry.rkey, {Then::chunk_read, ReadRef{slot, bytes}.word()});
    watch_.reads().began(bytes);
    ++bulk.reads_outstanding;
    bulk.moved += bytes;
    bulk.gather_entry_offset += bytes;
    if (bulk.gather_entry_offset == gather_entry.length) next_gather_entry(bulk);
    charge(turn, bytes);
  }
  return Moved::all;
}

/// Copies the next gather entry, which is inline in the frame. The frame stays in its receive until JS gets
/// the request.
void Transfers::copy_inlined(ServerBulk& bulk, std::byte* message) {
  const std::uint32_t bytes = bulk.remote[bulk.gather_entry].length;
  const std::byte* inlined = link_.receives().memory_of(*bulk.held_receive) +
                             bulk.request.word[ev::metadata_offset] + bulk.request.word[ev::metadata_bytes];
  std::memcpy(message + bulk.moved, inlined + bulk.inlined_taken, bytes);
  bulk.inlined_taken += bytes;
  bulk.moved += bytes;
  next_gather_entry(bulk);
}

/// Advances to the next gather entry, which is placed behind the last one, or at its aligned offset.
void Transfers::next_gather_entry(ServerBulk& bulk) {
  ++bulk.gather_entry;
  bulk.gather_entry_offset = 0;
  if (bulk.aligned && bulk.moved != bulk.total) {
    bulk.moved = static_cast<std::uint32_t>(wire::aligned_offset(bulk.moved));
  }
}

/// READs complete in order, so the oldest READ into staging memory has completed. The bytes of that READ are
/// copied to the block of the request. (Even a cancelled call keeps its block until its last READ has
/// completed.)
void Transfers::on_read(std::uint32_t bytes) {
  watch_.reads().ended(bytes);
  if (landings_.empty()) return;
  const Landing landing = landings_.front();
  landings_.pop_front();
  std::memcpy(landing.to, link_.staging()->at(landing.block).data, landing.bytes);
  link_.staging()->release(landing.block);
}

/// Prepares WRITEs of the call. Returns Moved::all when all of them and the response frame are prepared.
Moved Transfers::move_write(std::uint32_t slot, Turn& turn) {
  ServerCall& call = calls_[slot];
  ServerBulk& bulk = *call.bulk;
  if (any_memory_gone(bulk.gather_entries)) {
    owner_.stop_writing(slot, kInternal,
                        "the memory of the response was transferred or detached before it had been sent");
    return Moved::all;
  }
  if (bulk.moved == 0) {
    const std::string why =
        link_.queue_pair().reach(call.reply_buffer.rkey, call.reply_buffer.addr, bulk.total);
    if (!why.empty()) {
      owner_.stop_writing(slot, kResourceExhausted,
                          "the server cannot reach the memory for the response: " + why);
      return Moved::all;
    }
  }
  const fabric::Capabilities& can = link_.capabilities();
  const std::size_t sge_max = std::min<std::size_t>(can.max_sge, kSgeMax);
  while (bulk.moved < bulk.total) {
    if (const Moved moved = may_post(turn); moved != Moved::all) return moved;
    const std::uint32_t chunk =
        shared_.flow.write_chunk(std::min<std::uint64_t>(can.max_msg_bytes, can.max_write_bytes));
    if (!link_.send().may_write(std::min(chunk, bulk.total - bulk.moved))) return turn.halt(Moved::stuck);
    fabric::Sge sges[kSgeMax];
    std::size_t count = 0;
    std::uint32_t bytes = 0;
    const std::uint64_t to = call.reply_buffer.addr + bulk.moved, start = bulk.moved;
    // One WRITE combines as many gather entries as are contiguous in the reply buffer.
    while (count < sge_max && bytes < chunk && bulk.gather_entry < bulk.gather_entries.size() &&
           bulk.moved == start + bytes) {
      const GatherEntry& gather_entry = bulk.gather_entries[bulk.gather_entry];
      const std::uint32_t take = std::min(gather_entry.length - bulk.gather_entry_offset, chunk - bytes);
      sges[count++] = {gather_entry.addr + bulk.gather_entry_offset, take, gather_entry.region->lkey()};
      bytes += take;
      bulk.moved += take;
      bulk.gather_entry_offset += take;
      if (bulk.gather_entry_offset == gather_entry.length) next_gather_entry(bulk);
    }
    watch_.answers().wrote(bulk.moved - start);
    link_.send().write({sges, count}, to, call.reply_buffer.rkey);
    charge(turn, bytes);
  }
  owner_.send_written_response(slot);
  return Moved::all;
}

}  // namespace rdma_rpc::session
