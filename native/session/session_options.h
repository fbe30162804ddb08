// Defines the options of a session. The binding fills the options in from JS; the native tests set them
// directly. See Session::open().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "session/link/sealing.h"

namespace rdma_rpc::session {

struct SessionOptions {
  /// True when this side makes the calls and the peer serves them.
  bool client = true;
  std::uint32_t inflight_max = 256;
  std::uint32_t max_message_bytes = 64u << 20;
  std::uint32_t peer_max_message_bytes = 64u << 20;
  /// Limit of the staging memory, on devices without windows (see staging.h). The memory grows as needed. 0
  /// stands for the size of the largest message, or for kStagingBytesLeast if that is more.
  std::size_t staging_bytes = 0;
  /// Number of call slots for the calls in flight, and for streams with their parts, which usually wait for
  /// an application. 0 stands for `inflight_max`.
  std::uint32_t call_slots = 0;
  /// True when both sides use a credit pool. Both sides then begin with kCertainReceives credits and get more
  /// on demand (docs/wire/calls.md §4), so that receives may be shared.
  bool credit_pool = false;
  /// Limit of arena memory for the large requests of a client, until their handlers have released them. The
  /// same limit applies again to large responses. When the value is 0, the session gets its share.
  std::size_t arena_max_bytes = 0;
  /// A server's default deadline of calls, and its longest deadline; 0 for no limit.
  std::uint64_t timeout_default_us = 0, timeout_max_us = 0;
  /// Keys and cipher; unset when frames and bulk messages are not sealed.
  std::optional<SealOptions> seal{};
  /// Size of the peer's receives; 0 when it is the size of this side's receives.
  std::uint32_t peer_slot_bytes = 0;
  /// True when the peer accepts messages in segments (docs/wire/frames.md §2.5).
  bool peer_takes_segments = false;
  /// True when the peer accepts inline gather entries (docs/wire/frames.md §2.1).
  bool peer_takes_inlined = false;
  /// True when this side starts the connection on the fabric. Exactly one of the two sides must be active,
  /// and it may be the client or the server. When the value is unset, the client is active.
  std::optional<bool> active{};
  /// See fabric::QpOptions.
  std::uint32_t connect_timeout_ms = 0;
  bool is_active() const { return active.value_or(client); }
};

}  // namespace rdma_rpc::session
