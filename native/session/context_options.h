// What a context is asked for: by the binding, with what JS gives, and by the native tests. See
// Context::open().
#pragma once

#include <cstdint>
#include <optional>

#include "memory/arena.h"
#include "memory/mr_cache.h"
#include "session/exposure.h"
#include "session/limits.h"

namespace rdma_rpc::session {

struct ContextOptions {
  std::uint32_t slot_bytes = 8192;
  std::uint32_t send_slots = 256;
  /// Messages of so many bytes at most go in segments; without: as the device would have it.
  std::optional<std::uint32_t> segmented_bytes{};
  memory::ArenaOptions arena;
  memory::MrCacheOptions mr_cache;
  Exposure exposure = Exposure::automatic;
  /// Other processes of this user may read the counters page.
  bool publish_counters = false;
  /// READs under way, of all sessions.
  std::uint64_t read_bytes_max = kReadBytesMax;
  /// Where sequence numbers, generations and tokens begin: tests begin just below the wrap.
  std::uint32_t counters_start = 0;
  /// So many sessions have receives of their own before any share them: none, in tests of what shares.
  std::uint32_t shared_from = kSharedFrom;
};

}  // namespace rdma_rpc::session
