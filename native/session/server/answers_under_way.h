// Watches the large responses of one session that are being written to its peer: how much of the arena they
// keep in use, and whether the peer accepts them fast enough. PeerWatch owns this object and uses it on the
// context's thread. reads_under_way.h does the same for the READs of requests.
#pragma once

#include <algorithm>
#include <cstdint>

#include "session/limits.h"
#include "session/pace.h"

namespace rdma_rpc::session {

class AnswersUnderWay {
 public:
  void began(std::uint64_t bytes) {
    bytes_ += bytes;
    unsent_ += bytes;
  }
  /// Records that WRITEs of this number of bytes have been prepared.
  void wrote(std::uint64_t bytes) { unsent_ -= bytes; }
  /// Records that a response of `bytes` bytes has ended. The remaining `left` bytes of the response will not
  /// be written.
  void ended(std::uint64_t bytes, std::uint64_t left) {
    bytes_ -= bytes;
    unsent_ -= left;
  }

  /// Checks the peer's pace about every kHoldCheckNs. `ahead` is the number of bytes of WRITEs that have been
  /// prepared but not completed. `completed` is the number of bytes of completed WRITEs. Returns false when
  /// the peer has moved too little for too long.
  bool look(std::uint64_t awake_ns, std::uint64_t ahead, std::uint64_t completed) {
    const std::uint64_t left = unsent_ + ahead;
    if (left == 0) {
      pace_.rest();
      reclaim_pace_.rest();
      return true;
    }
    const auto due = [left](std::uint64_t least, std::uint64_t of) {
      return std::min(left, std::max(least, of / kBulkPeriods));
    };
    reclaim_pace_.look(awake_ns, completed, due(kReclaimBytes, bytes_));
    return pace_.look(awake_ns, completed, due(kBulkLeastBytes, left));
  }
  /// Returns the time for which the peer has been too slow while calls wait for memory (kReclaimNs), or 0
  /// when the peer is fast enough.
  std::uint64_t late_ns(std::uint64_t awake_ns) const { return reclaim_pace_.late_ns(awake_ns); }

 private:
  std::uint64_t bytes_ = 0;   ///< sum of the sizes of these responses
  std::uint64_t unsent_ = 0;  ///< those of the bytes for which no WRITE has been prepared
  Pace pace_{kBulkStillNs}, reclaim_pace_{kReclaimNs};
};

}  // namespace rdma_rpc::session
