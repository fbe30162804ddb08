// The options of a session, given by the binding from JS, and by the native tests. See Session::open().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "session/link/sealing.h"

namespace rdma_rpc::session {

struct SessionOptions {
  /// This side makes the calls; the other one serves them.
  bool client = true;
  std::uint32_t inflight_max = 256;
  std::uint32_t max_message_bytes = 64u << 20;
  std::uint32_t peer_max_message_bytes = 64u << 20;
  /// Limit of the staging memory, on devices without windows (see staging.h); it grows as needed. 0 for the
  /// size of the largest message, at least kStagingBytesLeast.
  std::size_t staging_bytes = 0;
  /// Number of call slots: for the calls in flight, and for streams with their parts, which mostly wait for
  /// an application. 0 for `inflight_max`.
  std::uint32_t call_slots = 0;
  /// Both sides use a credit pool: they begin with kCertainReceives credits and get more on demand
  /// (docs/wire/calls.md §4), so that receives may be shared.
  bool credit_pool = false;
  /// Limit of arena memory for large requests of a client, until their handlers have released them, and the
  /// same again for large responses. 0 for the session's share.
  std::size_t arena_max_bytes = 0;
  /// A server's default deadline of calls, and its longest deadline; 0 for no limit.
  std::uint64_t timeout_default_us = 0, timeout_max_us = 0;
  /// Keys and cipher, if frames and bulk messages are sealed.
  std::optional<SealOptions> seal{};
  /// Size of the peer's receives; 0 for the size of this side's.
  std::uint32_t peer_slot_bytes = 0;
  /// The peer accepts messages in segments (docs/wire/frames.md §2.5).
  bool peer_takes_segments = false;
  /// The peer accepts inline gather entries (docs/wire/frames.md §2.1).
  bool peer_takes_inlined = false;
  /// Whether this side asks the fabric for the connection. Without: the client does. Exactly one of the two
  /// sides must, whichever of them makes the calls.
  std::optional<bool> active{};
  bool is_active() const { return active.value_or(client); }
};

}  // namespace rdma_rpc::session
