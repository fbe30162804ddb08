// Decides when V8 is asked to collect its young objects because of memory lent to the application. When an
// application drops its messages, their blocks are returned only when V8 finds that their ArrayBuffers are
// unreachable. V8 looks for such buffers only when the external memory that it counts has grown by 64 MiB,
// and it then searches its whole heap. This costs 100 to 200 us for each message of 1 MiB. During that time,
// the program uses 16,000 fresh pages of the arena. A collection of the young objects takes 0.1 to 0.3 ms and
// finds all messages that were dropped soon after they arrived (docs/internals/decisions/memory.md has the
// figures). Each context has one such object. The BlockBuffers of the context owns the object and uses it on
// the JS thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rdma_rpc::binding {

class YoungBuffers {
 public:
  /// A collection is wanted when this number of bytes, lent since the last collection, has not been returned.
  /// The number is smaller for a small arena. From 16 MiB on, Node 24 and later would begin full collections,
  /// because they add external memory to the size of a heap that was small after the last collection.
  static constexpr std::size_t kCollectBytes = std::size_t{4} << 20;
  static constexpr std::size_t kArenaShare = 8;
  /// When this multiple of kCollectBytes has not been returned, a collection is due even if it is expensive,
  /// because a full collection costs more.
  static constexpr std::size_t kOverdue = 3;
  /// A collection gains nothing for an application that keeps its messages. A collection is therefore wanted
  /// only when the bytes lent since the last one are at least 1/n of the older bytes that the application
  /// keeps.
  static constexpr std::size_t kKeptShare = 4;
  /// Limit of the collections' share of the thread's time, in percent, as in CollectionBudget.
  static constexpr std::uint64_t kPercent = 10;

  explicit YoungBuffers(std::size_t arena_bytes)
      : collect_bytes_(std::min(kCollectBytes, arena_bytes / kArenaShare)) {}

  /// Records that JS has received the buffer of a block of this size.
  void lent(std::size_t bytes) {
    out_ += bytes;
    fresh_ += bytes;
    lately_ = true;
  }
  /// Records that the application has returned a buffer.
  void returned(std::size_t bytes) {
    collected(bytes);
    fresh_ -= std::min(fresh_, bytes);
  }
  /// Records that V8 has collected a buffer.
  void collected(std::size_t bytes) { out_ -= std::min(out_, bytes); }

  /// Returns whether a collection is wanted. The check is cheap enough to be made for each batch of events.
  bool wanted() const {
    return fresh_ >= std::max(collect_bytes_, (out_ - std::min(out_, fresh_)) / kKeptShare);
  }
  bool due(std::uint64_t now_ns) const {
    return wanted() && (now_ns >= next_ns_ || fresh_ >= kOverdue * collect_bytes_);
  }
  /// Returns true when nothing was lent since the last call, no collection is due, and a collection might
  /// still free buffers.
  bool rests() { return !std::exchange(lately_, false) && fresh_ != 0; }
  /// Records a collection that took place between these two times.
  void done(std::uint64_t began_ns, std::uint64_t ended_ns) {
    fresh_ = 0;
    next_ns_ = ended_ns + (ended_ns - std::min(began_ns, ended_ns)) * (100 - kPercent) / kPercent;
  }
  /// Returns the number of bytes in the buffers that JS is known to have now.
  std::size_t out() const { return out_; }

 private:
  std::size_t collect_bytes_;
  std::size_t out_ = 0, fresh_ = 0;
  std::uint64_t next_ns_ = 0;
  bool lately_ = false;
};

}  // namespace rdma_rpc::binding
