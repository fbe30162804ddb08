// When V8 is asked to collect its young objects because of memory that the application has been lent. An
// application that drops its messages says nothing: their blocks come back when V8 finds that nobody has
// their ArrayBuffers any more. Left alone it looks when the external memory that it counts has grown by 64
// MiB, and then at its whole heap: 100 to 200 us for each message of 1 MiB, and 16,000 fresh pages of the
// arena. A collection of the young objects takes 0.1 to 0.3 ms and finds all that was dropped soon
// (docs/internals/decisions/memory.md has the figures). One per context, owned by BlockBuffers, on the JS
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rdma_rpc::binding {

class YoungBuffers {
 public:
  /// Bytes that have been lent and not given back since the last collection; less of a small arena. With 16
  /// MiB Node 24 and later begin full collections: they add external memory to the size of a heap that was
  /// small after the last one.
  static constexpr std::size_t kCollectBytes = std::size_t{4} << 20;
  static constexpr std::size_t kArenaShare = 8;
  /// With so many times as many it is due whatever it costs, since a full collection costs more.
  static constexpr std::size_t kOverdue = 3;
  /// An application that keeps its messages gains nothing by it: it may keep this many times as much between
  /// two collections as it was lent meanwhile.
  static constexpr std::size_t kKeptShare = 4;
  /// Percent of the time of the thread, as of CollectionBudget.
  static constexpr std::uint64_t kPercent = 10;

  explicit YoungBuffers(std::size_t arena_bytes)
      : collect_bytes_(std::min(kCollectBytes, arena_bytes / kArenaShare)) {}

  /// JS has the buffer of a block of that size.
  void lent(std::size_t bytes) {
    out_ += bytes;
    fresh_ += bytes;
    lately_ = true;
  }
  /// It has given it back.
  void returned(std::size_t bytes) {
    collected(bytes);
    fresh_ -= std::min(fresh_, bytes);
  }
  /// V8 has found that nobody has it.
  void collected(std::size_t bytes) { out_ -= std::min(out_, bytes); }

  /// Cheap: for each batch of events.
  bool wanted() const {
    return fresh_ >= std::max(collect_bytes_, (out_ - std::min(out_, fresh_)) / kKeptShare);
  }
  bool due(std::uint64_t now_ns) const {
    return wanted() && (now_ns >= next_ns_ || fresh_ >= kOverdue * collect_bytes_);
  }
  /// Some would perhaps come back, although no collection is due, and none has been lent since this was last
  /// asked.
  bool rests() { return !std::exchange(lately_, false) && fresh_ != 0; }
  /// One has taken place, between these times.
  void done(std::uint64_t began_ns, std::uint64_t ended_ns) {
    fresh_ = 0;
    next_ns_ = ended_ns + (ended_ns - std::min(began_ns, ended_ns)) * (100 - kPercent) / kPercent;
  }
  /// Bytes of buffers that JS has now, as far as is known.
  std::size_t out() const { return out_; }

 private:
  std::size_t collect_bytes_;
  std::size_t out_ = 0, fresh_ = 0;
  std::uint64_t next_ns_ = 0;
  bool lately_ = false;
};

}  // namespace rdma_rpc::binding
