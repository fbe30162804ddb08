// The state of a call slot in the client endpoint of a session. The slot number is a part of the call word on
// the wire, so an index from the peer is checked once and then trusted. Read and written by ClientEndpoint,
// on the context's thread.
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
  active,     ///< request submitted
  leaving,    ///< cancelled with memory exposed: held until the peer's last word
  revoking,   ///< result known: waits for its windows to be invalid
};

/// The state that only a call with exposed memory needs. `windows` has the windows that are still valid.
struct ClientBulk {
  /// staging mode: of the caller until the frame goes out, then the copy
  std::vector<GatherEntry> gather_entries;
  /// of the gather entries, then of the reply buffer
  std::vector<std::unique_ptr<fabric::MemoryWindow>> windows;
  std::uint32_t token = 0;                          ///< for the SENT event, 0: none
  RequestSize request_size = RequestSize::small;    ///< as the predictor of answers knows it
  memory::BlockId reply_buffer = memory::kNoBlock;  ///< one reference held
  /// `reply_buffer` is the application's
  bool reply_buffer_given = false;
  /// of the reply buffer that the peer has now, 0: none
  std::uint32_t reply_buffer_capacity = 0;
  std::uint32_t reply_buffer_asked = 0;   ///< bytes that the peer has asked for; it may do so once
  bool exposed = false;                   ///< the peer has a key to memory of this call
  std::uint64_t number = 0;               ///< of the request's message, in a sealed session
  std::optional<std::uint64_t> answer{};  ///< of the sealed response in the reply buffer
  bool aligned = false;                   ///< the request is an aligned message
  bool reply_buffer_only = false;         ///< no other than the caller's reply buffer may be used
  /// size of the response that the call itself has no room for: its reply buffer is too small and the only
  /// one allowed, or its request holds most of the arena
  std::uint32_t refused_bytes = 0;
  /// Ranges of the session's staging memory that are exposed instead of the call's own memory.
  memory::BlockId staged_request = memory::kNoBlock, staged_reply_buffer = memory::kNoBlock;
  bool lends_request = false;       ///< the peer has a key to memory that the application may change
  bool lends_reply_buffer = false;  ///< the peer has a key to write to memory of the application
  bool revoked = false;             ///< its windows give no access any more, so their memory may be freed
  bool reserve = false;             ///< a credit is reserved for its CANCEL
  bool cancel_arrived = false;      ///< leaving: the CANCEL lies in the peer's receive queue
  bool notified = false;  ///< leaving, revoking: JS has its FAILED; slot and memory follow with RELEASED
  std::uint64_t hold_since_ns = 0;  ///< time of its cancellation, on the awake clock
  bool late_may_come = false;       ///< a response may still come, late but valid
  std::size_t issued = 0;           ///< number of windows whose invalidation is posted
  std::uint32_t revoking = 0;       ///< number of them that are not completed
  // the request frame, while it waits for room to bind (deferred)
  std::uint32_t slot = 0, metadata_bytes = 0, message_bytes = 0, timeout_us = 0;
  bool deferred = false;
  bool held_back = false;           ///< part: its reply buffer waits until the application reads the part
  std::int32_t held_receive = -1;   ///< receive slot of the response, not yet handed to JS
  boundary::Event result;           ///< emitted when no memory is exposed any more
  std::uint64_t timeout_at_ns = 0;  ///< limit of leaving or revoking, on the awake clock; 0 for none
};

struct ClientCall {
  std::uint32_t generation = 0;
  std::uint32_t method = 0;
  ClientState state = ClientState::idle;
  boundary::Reason reason = boundary::Reason::cancelled;  ///< why it was cancelled
  bool unsent = false;                                    ///< found unposted when the session broke
  bool part = false;                                      ///< a stream, or a part of one
  bool opens = false;                                     ///< the stream
  std::uint32_t began = 0;                                ///< telemetry::time_of()
  std::unique_ptr<ClientBulk> bulk;

  /// Returns whether it counts as a call and is timed.
  bool is_call() const { return !part || opens; }
};

}  // namespace rdma_rpc::session
