// The READs of one session that are under way: what they take of the READs that all sessions of a context may
// have, and whether its peer answers them. Owned by PeerWatch, on the context's thread.
//
// A peer that is stopped or slow keeps its READs for as long as it likes. So that others do not wait for it,
// its READs stop counting for them after kReadSlowNs, and the session has one at a time until it is as fast
// as others again.
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

  /// How many bytes a READ may have that is wanted for `bytes`; 0: it has to wait.
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
  /// The queue pair has none any more.
  void clear() {
    if (!slow_) flow_.read_ended(bytes_);
    count_ = 0;
    bytes_ = 0;
  }

  /// Looks at the clock, every now and then. `arrived`: what the fabric knows of bytes that have come, those
  /// of READs under way included; `held`: memory of the requests that they belong to. Returns false when the
  /// peer has stood still for too long.
  bool look(std::uint64_t awake_ns, std::uint64_t arrived, std::uint64_t held) {
    if (count_ == 0) {
      slow_pace_.rest();
      still_.rest();
      give_up_pace_.rest();
      be_slow(false);
      return true;
    }
    const std::uint64_t moved = std::max(completed_, arrived);
    const std::uint64_t left = completed_ + bytes_ - moved;
    be_slow(!slow_pace_.look(awake_ns, moved, std::min<std::uint64_t>(left, kChunkBytes)));
    give_up_pace_.look(awake_ns, moved, std::min(left, std::max(kGiveUpBytes, held / kBulkPeriods)));
    return still_.look(awake_ns, moved, std::min(left, kBulkLeastBytes));
  }
  /// How long the peer has been too slow for calls that wait for memory (kGiveUpNs); 0: it is fast enough.
  std::uint64_t late_ns(std::uint64_t awake_ns) const { return give_up_pace_.late_ns(awake_ns); }

 private:
  void be_slow(bool slow) {
    if (slow == slow_) return;
    slow_ = slow;
    slow ? flow_.read_ended(bytes_) : flow_.read_began(bytes_);
  }

  Flow& flow_;
  std::uint32_t count_ = 0;
  std::uint64_t bytes_ = 0, completed_ = 0;
  bool slow_ = false;  ///< its READs do not count for other sessions
  Pace slow_pace_{kReadSlowNs}, still_{kBulkStillNs}, give_up_pace_{kGiveUpNs};
};

}  // namespace rdma_rpc::session
