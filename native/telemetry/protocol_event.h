// Defines one protocol step in the flight recorder (recorder.h): an entry of fixed size, with the same layout
// in the counters page and in trace files. cli/trace/events.ts also reads entries of other versions.
// Therefore numbers of kinds are never reused, and the meaning of a field never changes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdma_rpc::telemetry {

enum class EventKind : std::uint8_t {
  frame_in = 1,    ///< type, flags, call, method: from the frame's header; bytes: of the frame; detail: its
                   ///< credits
  frame_out = 2,   ///< the same fields, for a frame that is handed to the send queue
  post = 3,        ///< detail: number of requests that the device accepted; bytes: number of requests offered
  completion = 4,  ///< of a request and all before it; type: status; detail: number of requests created so
                   ///< far
  grant = 5,       ///< the peer gets a key to memory; type: kind of access; bytes: length; detail: key
  read = 6,        ///< a READ was prepared; bytes: its length; detail: key
  write = 7,       ///< a WRITE was prepared; the same fields
  /// a call has ended on this side; type: 1 for success, 0 for failure; method; detail: time since its
  /// request, in 256 ns
  settle = 8,
  state = 9,   ///< type: the state of a session as in the counters page, or 4 for down
  ended = 10,  ///< the session ends; the following `text` entries say why
  text = 11,   ///< 16 bytes of text instead of the four numbers; continues the entry before
};

struct EventRow {
  std::uint64_t at_ns;
  std::uint32_t session;
  EventKind kind;
  std::uint8_t type, flags, reserved;
  std::uint32_t call, method, bytes, detail;
};
static_assert(sizeof(EventRow) == 32 && offsetof(EventRow, call) == 16);
inline constexpr std::size_t kTextBytesPerRow = sizeof(EventRow) - offsetof(EventRow, call);

}  // namespace rdma_rpc::telemetry
