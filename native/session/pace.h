// Whether the peer of a session moves bulk data on: all that is under way, or a certain part of it, in each
// period of time. Used by ReadsUnderWay and AnswersUnderWay, on the context's thread.
//
// A count of completions would not do: a peer that sends a byte now and then completes something, too.
#pragma once

#include <cstdint>

namespace rdma_rpc::session {

class Pace {
 public:
  explicit Pace(std::uint64_t period_ns) : period_ns_(period_ns) {}

  /// Nothing is under way. What begins later has a period of its own.
  void rest() {
    begun_ = false;
    kept_ = true;
  }

  /// Looks at the clock. `moved` counts the bytes that have been moved since the session began; `due` are
  /// those that the period which may begin now has to bring. Returns false from the end of a period that has
  /// brought less, until one brings as much in time.
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

  /// How long the period has lasted that has not brought what was due in time; 0: the last one has.
  std::uint64_t late_ns(std::uint64_t now_ns) const { return kept_ ? 0 : now_ns - since_ns_; }

 private:
  const std::uint64_t period_ns_;
  bool begun_ = false, kept_ = true;
  std::uint64_t since_ns_ = 0, moved_at_ = 0, due_ = 0;
};

}  // namespace rdma_rpc::session
