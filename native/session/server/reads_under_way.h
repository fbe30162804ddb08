// Watches the READs of one session that are in flight: their share of the limit for all sessions of a
// context, and whether the peer answers them fast enough. PeerWatch owns this object and uses it on the
// context's thread.
//
// A stopped or slow peer may keep its READs in flight for any time, and other sessions must not wait for it.
// Therefore, after kReadSlowNs, its READs stop counting towards the common limit. The session is then limited
// to one READ at a time until it is as fast as others again.
#pragma once

#include <algorithm>
#include <cstdint>

#include "session/flow.h"
#include "session/limits.h"
#include "session/pace.h"

namespace rdma_rpc::session {

class ReadsUnderWay {
 public:
  explicit ReadsUnderWay(Flow& flow) : flow_(flow) {}
  ~ReadsUnderWay() { clear(); }
  ReadsUnderWay(const ReadsUnderWay&) = delete;
  ReadsUnderWay& operator=(const ReadsUnderWay&) = delete;

  std::uint32_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }

  /// Returns how many of `bytes` bytes the next READ may fetch, or 0 when it must wait.
  std::uint32_t may_begin(std::uint32_t bytes) const {
    if (slow_ && count_ != 0) return 0;
    return flow_.may_read(bytes_, bytes);
  }
  void began(std::uint32_t bytes) {
    ++count_;
    bytes_ += bytes;
    if (!slow_) flow_.read_began(bytes);
  }
  void ended(std::uint32_t bytes) {
    --count_;
    bytes_ -= bytes;
    completed_ += bytes;
    if (!slow_) flow_.read_ended(bytes);
  }
  /// Forgets all READs, because the queue pair has none left.
  void clear() {
    if (!slow_) flow_.read_ended(bytes_);
    count_ = 0;
    bytes_ = 0;
  }

  /// Checks the peer's pace about every kHoldCheckNs. `arrived` are the bytes that the fabric has received,
  /// including those of unfinished READs. `held` is the size of the memory of the requests to which these
  /// READs belong. Returns false when the peer has moved too little for too long.
  bool look(std::uint64_t awake_ns, std::uint64_t arrived, std::uint64_t held) {
    if (count_ == 0) {
      slow_pace_.rest();
      still_.rest();
      reclaim_pace_.rest();
      be_slow(false);
      return true;
    }
    const std::uint64_t moved = std::max(completed_, arrived);
    const std::uint64_t left = completed_ + bytes_ - moved;
    be_slow(!slow_pace_.look(awake_ns, moved, std::min<std::uint64_t>(left, kChunkBytes)));
    reclaim_pace_.look(awake_ns, moved, std::min(left, std::max(kReclaimBytes, held / kBulkPeriods)));
    return still_.look(awake_ns, moved, std::min(left, kBulkLeastBytes));
  }
  /// Returns the time for which the peer has been too slow while calls wait for memory (kReclaimNs), or 0
  /// when the peer is fast enough.
  std::uint64_t late_ns(std::uint64_t awake_ns) const { return reclaim_pace_.late_ns(awake_ns); }

 private:
  void be_slow(bool slow) {
    if (slow == slow_) return;
    slow_ = slow;
    slow ? flow_.read_ended(bytes_) : flow_.read_began(bytes_);
  }

  Flow& flow_;
  std::uint32_t count_ = 0;
  std::uint64_t bytes_ = 0, completed_ = 0;
  bool slow_ = false;  ///< its READs do not count in the common limit
  Pace slow_pace_{kReadSlowNs}, still_{kBulkStillNs}, reclaim_pace_{kReclaimNs};
};

}  // namespace rdma_rpc::session
