// Defines the options of a context. The binding fills the options in from JS; the native tests set them
// directly. See Context::open().
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
  /// Limit of messages that are sent in segments. The device's value applies when the option is unset.
  std::optional<std::uint32_t> segmented_bytes{};
  memory::ArenaOptions arena;
  memory::MrCacheOptions mr_cache;
  Exposure exposure = Exposure::automatic;
  /// True when other processes of this user may read the counters page.
  bool publish_counters = false;
  /// Limit of the bytes of all sessions' READs in flight.
  std::uint64_t read_bytes_max = kReadBytesMax;
  /// Initial value of sequence numbers, generations and tokens. Tests begin just below the wrap-around.
  std::uint32_t counters_start = 0;
  /// Number of sessions that get receives of their own before sessions share receives. Tests of sharing set
  /// 0.
  std::uint32_t shared_from = kSharedFrom;
};

}  // namespace rdma_rpc::session
