// What a session is asked for: by the binding, with what JS gives, and by the native tests. See
// Session::open().
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
  /// Of the memory that the peer can touch, where there are no windows (see staging.h). It grows to that.
  /// 0: as much as the largest message takes, so that each can be sent, and at least kStagingBytesLeast.
  std::size_t staging_bytes = 0;
  /// Calls that may be open at once: those that `inflight_max` receives are for, and streams with their
  /// parts, which mostly wait for an application. 0: inflight_max.
  std::uint32_t call_slots = 0;
  /// Both sides begin with kCertainReceives credits and take what more they get (WIRE §4): receives may be
  /// shared.
  bool credit_pool = false;
  /// Arena memory that large requests of a client may hold at once, read or not yet let go of by handlers;
  /// and as much again for large answers to it. 0: as much as its share.
  std::size_t arena_max_bytes = 0;
  /// A server's deadline for calls whose clients set none, and its longest deadline. 0 where there is no such
  /// limit.
  std::uint64_t timeout_default_us = 0, timeout_max_us = 0;
  /// Frames and bulk messages are sealed; without: sent as they are.
  std::optional<SealOptions> seal{};
  /// What the peer's receives hold; 0: as much as those of this side.
  std::uint32_t peer_slot_bytes = 0;
  /// It puts messages together that come in segments (WIRE §2.5).
  bool peer_takes_segments = false;
  /// It takes gather entries that a request carries in its frame (WIRE §2.1).
  bool peer_takes_inlined = false;
  /// Whether this side asks the fabric for the connection. Without: the client does. Exactly one of the two
  /// sides must, whichever of them makes the calls.
  std::optional<bool> active{};
  bool is_active() const { return active.value_or(client); }
};

}  // namespace rdma_rpc::session
