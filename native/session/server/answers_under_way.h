// The large answers of one session that are being written to its peer: how much of the arena they keep in
// use, and whether the peer takes them. Owned by PeerWatch, on the context's thread. The READs of requests
// have reads_under_way.h.
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
  /// WRITEs of so many bytes have been made.
  void wrote(std::uint64_t bytes) { unsent_ -= bytes; }
  /// No more WRITEs are made of an answer, with so many bytes left.
  void ended(std::uint64_t bytes, std::uint64_t left) {
    bytes_ -= bytes;
    unsent_ -= left;
  }

  /// Looks at the clock, every now and then. `ahead`, `completed`: bytes of WRITEs that have been made and
  /// not completed, and that have completed. Returns false when the peer has stood still for too long.
  bool look(std::uint64_t awake_ns, std::uint64_t ahead, std::uint64_t completed) {
    const std::uint64_t left = unsent_ + ahead;
    if (left == 0) {
      pace_.rest();
      give_up_pace_.rest();
      return true;
    }
    const auto due = [left](std::uint64_t least, std::uint64_t of) {
      return std::min(left, std::max(least, of / kBulkPeriods));
    };
    give_up_pace_.look(awake_ns, completed, due(kGiveUpBytes, bytes_));
    return pace_.look(awake_ns, completed, due(kBulkLeastBytes, left));
  }
  /// How long the peer has been too slow for calls that wait for memory (kGiveUpNs); 0: it is fast enough.
  std::uint64_t late_ns(std::uint64_t awake_ns) const { return give_up_pace_.late_ns(awake_ns); }

 private:
  std::uint64_t bytes_ = 0;   ///< of all these answers
  std::uint64_t unsent_ = 0;  ///< of these, bytes that no WRITE has been made for
  Pace pace_{kBulkStillNs}, give_up_pace_{kGiveUpNs};
};

}  // namespace rdma_rpc::session
