// Checks whether the peer of a session makes progress with bulk data. In each period of time, the peer must
// complete all data in flight, or a certain amount of it. This file is used by ReadsUnderWay and
// AnswersUnderWay, on the context's thread.
//
// A count of completions would not be enough, because a peer that sends a single byte from time to time also
// completes something.
#pragma once

#include <cstdint>

namespace rdma_rpc::session {

class Pace {
 public:
  explicit Pace(std::uint64_t period_ns) : period_ns_(period_ns) {}

  /// Ends the current period, because nothing is in flight. The next data begins a new period.
  void rest() {
    begun_ = false;
    kept_ = true;
  }

  /// Checks the clock. `moved` is the number of bytes that have been moved since the session began. `due` is
  /// the number of bytes that must be moved in the period that this call may begin. Returns false when a
  /// period has ended with fewer bytes than were due, and true again after a period in which enough bytes
  /// were moved.
  bool look(std::uint64_t now_ns, std::uint64_t moved, std::uint64_t due) {
    const bool over = begun_ && now_ns - since_ns_ >= period_ns_;
    if (begun_ && moved - moved_at_ < due_) {
      if (over) kept_ = false;
      return kept_;
    }
    if (begun_) kept_ = !over;
    begun_ = true;
    since_ns_ = now_ns;
    moved_at_ = moved;
    due_ = due;
    return kept_;
  }

  /// Returns how long the current period has exceeded its time, or 0 when the last period was completed in
  /// time.
  std::uint64_t late_ns(std::uint64_t now_ns) const { return kept_ ? 0 : now_ns - since_ns_; }

 private:
  const std::uint64_t period_ns_;
  bool begun_ = false, kept_ = true;
  std::uint64_t since_ns_ = 0, moved_at_ = 0, due_ = 0;
};

}  // namespace rdma_rpc::session
