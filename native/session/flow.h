// Implements flow control of bulk data for all sessions of a context. Flow decides how much one turn of the
// loop may move, how much may be in flight as READs, and which session moves next. This class is part of
// Shared. The server endpoints use it and Context drives it, on the context's thread.
//
// A small frame is delayed by bulk data on the wire and in the loop. On the wire, two limits bound the delay
// of such a frame: the limit of WRITEs that its own session posted before it (SendQueue), and the limit of
// READs of all sessions (here). In the loop, on fabrics where the CPU copies, the limit of copies in one turn
// bounds the delay (here).
#pragma once

#include <algorithm>
#include <cstdint>

#include "fabric/fabric.h"
#include "session/fair_queue.h"
#include "session/limits.h"

namespace rdma_rpc::session {

enum class Bulk : std::uint8_t { read, write };

class Flow {
 public:
  Flow(const fabric::Capabilities& capabilities, std::uint64_t read_bytes_max)
      : copies_(capabilities.copies_when_posted), read_bytes_max_(read_bytes_max) {}

  /// Returns the sessions that have READs or WRITEs to post, by number.
  FairQueue& sessions(Bulk kind) { return kind == Bulk::read ? reading_ : writing_; }
  bool waits() const { return !reading_.empty() || !writing_.empty(); }

  /// Counts an answered call. `small` is true when the call had no bulk data; more such calls may then be in
  /// flight.
  void count_small(bool small) { small_answers_ += small ? 1 : 0; }

  // --- a turn of the loop
  /// Lets sessions move in turn: calls `session(kind, number, credit)` for each. Returns true when there is
  /// more to move at once.
  template <class Move>
  bool move(std::uint64_t now_ns, Move&& session) {
    begin_turn(now_ns);
    reads_full_ = false;
    writes_first_ = !writes_first_;
    const Bulk first = writes_first_ ? Bulk::write : Bulk::read;
    for (const Bulk kind : {first, first == Bulk::read ? Bulk::write : Bulk::read}) {
      sessions(kind).serve(
          [&](std::uint32_t number, std::int64_t& credit) { return session(kind, number, credit); });
    }
    return turn_is_over() && waits();
  }
  bool turn_is_over() const { return left_ <= 0; }
  void moved(std::uint32_t bytes) { left_ -= bytes; }
  /// Returns the size of one READ. The device allows at most `most` bytes.
  std::uint32_t chunk(std::uint64_t most) const {
    const std::int64_t turn =
        copies_ ? std::clamp<std::int64_t>(left_, kSliceBytes, kChunkBytes) : kChunkBytes;
    return static_cast<std::uint32_t>(std::min(most, static_cast<std::uint64_t>(turn)));
  }
  std::uint32_t write_chunk(std::uint64_t most) const {
    return chunk(copies_ ? most : std::min<std::uint64_t>(most, kWriteChunkBytes));
  }

  // --- READs in flight
  /// Returns how many of `bytes` bytes a session may READ now, or 0 when it must wait. `own` is the number of
  /// bytes that the session's READs have in flight. A session gets at most as much as remains free for the
  /// others. Therefore one session has at most half of the total. A session without READs in flight always
  /// gets at least a short READ, so that it never waits for the peers of other sessions.
  std::uint32_t may_read(std::uint64_t own, std::uint32_t bytes) {
    if (read_bytes_ == 0) return bytes;
    const std::uint64_t free = read_bytes_max_ - std::min(read_bytes_, read_bytes_max_);
    if (own == 0) {
      return static_cast<std::uint32_t>(
          std::min<std::uint64_t>(bytes, std::max<std::uint64_t>(free, kReadLeastBytes)));
    }
    // The remaining room is reserved for the first session that needs more.
    if (bytes > free) reads_full_ = true;
    return reads_full_ || own + bytes > free ? 0 : bytes;
  }
  void read_began(std::uint64_t bytes) { read_bytes_ += bytes; }
  void read_ended(std::uint64_t bytes) { read_bytes_ -= bytes; }
  std::uint64_t read_bytes() const { return read_bytes_; }

 private:
  void begin_turn(std::uint64_t now_ns) {
    if (small_answers_ != small_seen_) {
      small_seen_ = small_answers_;
      small_until_ns_ = now_ns + kSmallTrafficNs;
    }
    left_ = !copies_ ? kPostedBytesPerTurn : now_ns < small_until_ns_ ? kSliceBytes : kCopiedBytesPerTurn;
  }

  FairQueue reading_, writing_;
  bool writes_first_ = false;  ///< READs and WRITEs share what a turn may move, and alternate in going first
  const bool copies_;
  const std::uint64_t read_bytes_max_;
  std::uint64_t read_bytes_ = 0;  ///< READs in flight, without those of slow sessions (see ReadsUnderWay)
  bool reads_full_ = false;       ///< a session was refused a READ in this turn of the loop
  std::int64_t left_ = 0;
  std::uint64_t small_answers_ = 0, small_seen_ = 0, small_until_ns_ = 0;
};

}  // namespace rdma_rpc::session
