// Defines the state of a call slot in the client endpoint of a session. The slot number is a part of the call
// word on the wire, so an index from the peer is checked once and then trusted. ClientEndpoint reads and
// writes it on the context's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/boundary.h"
#include "session/exposure.h"
#include "session/predictor.h"
#include "session/wire.h"

namespace rdma_rpc::session {

enum class ClientState : std::uint8_t {
  idle,       ///< free, or never used
  cancelled,  ///< free; its last call was cancelled, so one late response may still come
  active,     ///< the request was submitted
  leaving,    ///< cancelled with memory exposed: the slot stays in use until the peer has answered
  revoking,   ///< the result is known; the call waits until its windows are invalid
};

/// The state that only a call with exposed memory needs. `windows` contains the windows that are still valid.
struct ClientBulk {
  /// In staging mode, these are the caller's gather entries until the frame is sent, and the copies
  /// afterwards.
  std::vector<GatherEntry> gather_entries;
  /// Windows of the gather entries, followed by the window of the reply buffer.
  std::vector<std::unique_ptr<fabric::MemoryWindow>> windows;
  std::uint32_t token = 0;                          ///< token of the SENT event, 0 for no SENT event
  RequestSize request_size = RequestSize::small;    ///< size class of the request, for the predictor
  memory::BlockId reply_buffer = memory::kNoBlock;  ///< holds one reference to it
  /// True when the application provided `reply_buffer`.
  bool reply_buffer_given = false;
  /// Capacity of the reply buffer to which the peer may write now; 0 when there is no such buffer.
  std::uint32_t reply_buffer_capacity = 0;
  std::uint32_t reply_buffer_asked = 0;   ///< bytes that the peer has asked for; it may do so once
  bool exposed = false;                   ///< the peer has a key to memory of this call
  std::uint64_t number = 0;               ///< number of the request's message, in a sealed session
  std::optional<std::uint64_t> answer{};  ///< number of the sealed response in the reply buffer
  bool aligned = false;                   ///< the request is an aligned message
  bool reply_buffer_only = false;         ///< the response may use only the caller's reply buffer
  /// Size of a response for which the call itself has no room. Either its reply buffer is too small and is
  /// the only one allowed, or its request uses most of the arena.
  std::uint32_t refused_bytes = 0;
  /// Ranges of the session's staging memory that are exposed instead of the call's own memory.
  memory::BlockId staged_request = memory::kNoBlock, staged_reply_buffer = memory::kNoBlock;
  bool lends_request = false;       ///< the peer has a key to memory that the application may change
  bool lends_reply_buffer = false;  ///< the peer has a key to write to memory of the application
  bool revoked = false;             ///< its windows no longer give access, so their memory may be freed
  bool reserve = false;             ///< a credit is reserved for the CANCEL of this call
  bool cancel_arrived = false;      ///< leaving: the CANCEL lies in the peer's receive queue
  bool notified = false;            ///< leaving, revoking: JS has the FAILED event, and RELEASED will follow
  std::uint64_t hold_since_ns = 0;  ///< time of the cancellation, on the awake clock
  bool late_may_come = false;       ///< a response may still arrive, late but valid
  std::size_t issued = 0;           ///< number of windows whose invalidation is posted
  std::uint32_t revoking = 0;       ///< number of posted invalidations that have not completed
  // The request frame, while the request waits for room to bind (`deferred`).
  std::uint32_t slot = 0, metadata_bytes = 0, message_bytes = 0, timeout_us = 0;
  bool deferred = false;
  bool held_back = false;  ///< part: its reply buffer is granted only when the application reads the part
  std::int32_t held_receive = -1;   ///< receive slot of the response, not yet handed to JS
  boundary::Event result;           ///< emitted when no memory is exposed any more
  std::uint64_t timeout_at_ns = 0;  ///< when the state leaving or revoking ends, on the awake clock; 0: never
};

struct ClientCall {
  std::uint32_t generation = 0;
  std::uint32_t method = 0;
  ClientState state = ClientState::idle;
  boundary::Reason reason = boundary::Reason::cancelled;  ///< why it was cancelled
  bool unsent = false;      ///< its request was still unposted when the session broke
  bool part = false;        ///< a stream, or a part of one
  bool opens = false;       ///< opens a stream
  std::uint32_t began = 0;  ///< start time, by telemetry::time_of()
  std::unique_ptr<ClientBulk> bulk;

  /// Returns whether the slot counts as a call and is timed.
  bool is_call() const { return !part || opens; }
};

}  // namespace rdma_rpc::session
