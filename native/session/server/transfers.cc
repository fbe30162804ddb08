// The bytes of bulk messages on their way: READs of requests and WRITEs of responses, a limited number per
// turn so that other calls get in between. See server_half.h.
#include "session/server/server_half.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace rdma_rpc::session {

namespace {
constexpr std::uint8_t kResourceExhausted = 8;
constexpr std::uint8_t kInternal = 13;
}  // namespace

/// Of one READ or WRITE.
std::uint32_t ServerHalf::chunk_bytes() const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(kChunkBytes, capabilities_.max_msg_bytes));
}

bool ServerHalf::move_transfers() {
  std::uint32_t budget = kBulkBytesPerTurn;
  while (!transfers_.empty() && budget != 0 && link_.is_open()) {
    const std::uint32_t slot = transfers_.front();
    const ServerCall& call = calls_[slot];
    if (call.state == ServerState::writing && any_vanished(call.bulk->pieces)) {
      stop_writing(slot, kInternal,
                   "the memory of the response was transferred or detached before it had been sent");
      continue;
    }
    bool done = true;  // a call that was cancelled meanwhile has nothing to move
    if (call.state == ServerState::fetching && !call.cancelled) done = move_read(slot, budget);
    if (call.state == ServerState::writing && call.bulk->moved == 0) {
      const std::string why = link_.queue_pair().reach(call.sink.rkey, call.sink.addr, call.bulk->total);
      if (!why.empty()) {
        refuse(slot, kResourceExhausted, true, "the server cannot reach the memory for the response: " + why);
        continue;  // which took it from the transfers
      }
    }
    if (call.state == ServerState::writing) done = move_write(slot, budget);
    if (!done) break;
    transfers_.pop();
    if (call.state == ServerState::fetching && call.cancelled && call.bulk->reads_outstanding == 0) {
      deliver_fetched(slot);
    }
  }
  return !transfers_.empty() && budget == 0;
}

/// The call is refused when its READs are over. True: there is nothing more to prepare.
bool ServerHalf::give_up(ServerCall& call, std::string why) {
  call.cancelled = true;
  call.cancel_status = kResourceExhausted;
  call.bulk->refusal = std::move(why);
  return true;
}

/// True when every READ of the call is prepared.
bool ServerHalf::move_read(std::uint32_t slot, std::uint32_t& budget) {
  ServerCall& call = calls_[slot];
  ServerBulk& bulk = *call.bulk;
  std::uint32_t chunk = chunk_bytes();
  if (staging_ != nullptr)
    chunk = static_cast<std::uint32_t>(std::min<std::size_t>(chunk, staging_->largest()));
  const memory::Block& block = shared_.arena.at(bulk.block);
  while (bulk.moved < bulk.total) {
    if (budget == 0 || reads_outstanding_ >= capabilities_.max_rd_atomic || !send_.room(1)) return false;
    const wire::Piece& piece = bulk.remote[bulk.piece];
    if (bulk.piece_offset == 0) {
      const std::string why = link_.queue_pair().reach(piece.rkey, piece.addr, piece.length);
      if (!why.empty()) return give_up(call, "the server cannot reach the memory of the request: " + why);
    }
    const std::uint64_t from = piece.addr + bulk.piece_offset;
    const std::uint32_t bytes =
        capabilities_.read_bytes(from, std::min(piece.length - bulk.piece_offset, chunk));
    fabric::Sge into{reinterpret_cast<std::uint64_t>(block.data) + bulk.moved, bytes, block.region->lkey()};
    if (staging_ != nullptr) {
      const memory::BlockId range = staging_->take(bytes);
      if (range == memory::kNoBlock && !staging_->empty()) return false;
      if (range == memory::kNoBlock)
        return give_up(call, "the server has no staging memory: " + staging_->refusal());
      const memory::Block& landing = staging_->at(range);
      landings_.push_back({range, block.data + bulk.moved, bytes});
      into = {reinterpret_cast<std::uint64_t>(landing.data), bytes, landing.region->lkey()};
    }
    send_.read(into, from, piece.rkey, {Then::chunk_read, slot});
    ++reads_outstanding_;
    ++bulk.reads_outstanding;
    bulk.moved += bytes;
    bulk.piece_offset += bytes;
    if (bulk.piece_offset == piece.length) next_piece(bulk);
    budget -= std::min(budget, bytes);
  }
  return true;
}

/// A piece has been moved: the next one goes behind it, or to its place in an image.
void ServerHalf::next_piece(ServerBulk& bulk) {
  ++bulk.piece;
  bulk.piece_offset = 0;
  if (bulk.image && bulk.moved != bulk.total) {
    bulk.moved = static_cast<std::uint32_t>(wire::image_place(bulk.moved));
  }
}

/// The oldest READ into staging memory has completed: its bytes go where the request is put together. (A
/// cancelled call keeps its block until its last READ is over, so this is always good.)
void ServerHalf::land() {
  const Landing landing = landings_.front();
  landings_.pop_front();
  std::memcpy(landing.to, staging_->at(landing.block).data, landing.bytes);
  staging_->release(landing.block);
}

/// True when every WRITE of the call is prepared, and the response behind them.
bool ServerHalf::move_write(std::uint32_t slot, std::uint32_t& budget) {
  ServerCall& call = calls_[slot];
  ServerBulk& bulk = *call.bulk;
  const std::size_t sge_max = std::min<std::size_t>(capabilities_.max_sge, kSgeMax);
  const auto chunk =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(chunk_bytes(), capabilities_.max_write_bytes));
  while (bulk.moved < bulk.total) {
    if (budget == 0 || !send_.room(1)) return false;
    fabric::Sge sges[kSgeMax];
    std::size_t count = 0;
    std::uint32_t bytes = 0;
    const std::uint64_t to = call.sink.addr + bulk.moved, start = bulk.moved;
    // As many pieces as lie one behind the other there.
    while (count < sge_max && bytes < chunk && bulk.piece < bulk.pieces.size() &&
           bulk.moved == start + bytes) {
      const Piece& piece = bulk.pieces[bulk.piece];
      const std::uint32_t take = std::min(piece.length - bulk.piece_offset, chunk - bytes);
      sges[count++] = {piece.addr + bulk.piece_offset, take, piece.region->lkey()};
      bytes += take;
      bulk.moved += take;
      bulk.piece_offset += take;
      if (bulk.piece_offset == piece.length) next_piece(bulk);
    }
    send_.write({sges, count}, to, call.sink.rkey);
    budget -= std::min(budget, bytes);
  }
  send_written_response(slot);
  return true;
}

/// No more WRITEs. Those on their way go on, and so does the memory that they are made from; the answer comes
/// behind them.
void ServerHalf::stop_writing(std::uint32_t slot, std::uint32_t status, const std::string& text) {
  ServerCall& call = calls_[slot];
  if (call.bulk->moved == 0) return refuse(slot, status, true, text);
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    if (transfers_.at(i) == slot) transfers_.erase(i--);
  }
  const wire::Header header{static_cast<std::uint8_t>(wire::FrameType::response),
                            0,
                            0,
                            wire::call_word(slot, call.generation),
                            status,
                            0};
  const auto send_slot = static_cast<std::uint32_t>(std::exchange(call.bulk->slot, -1));
  const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), shared_.slot_bytes));
  std::memcpy(shared_.slots.payload(send_slot), text.data(), bytes);
  link_.send_message(send_slot, header, nullptr, 0, bytes, 0, {Then::bulk_sent, keep_until_sent(call)});
}

}  // namespace rdma_rpc::session
