// What the flight recorder keeps of each step of the protocol (recorder.h): a row of fixed size, as it lies
// in the counters page and in trace files. cli/trace/events.ts reads them, also those of other
// versions: numbers of kinds are never used again, and what a field holds never changes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdma_rpc::telemetry {

enum class EventKind : std::uint8_t {
  frame_in = 1,   ///< type, flags, call, method: of its header; bytes: of the frame; detail: its credits
  frame_out = 2,  ///< the same, when it is handed to the send queue
  post = 3,       ///< detail: requests that the device took; bytes: of so many
  completion =
      4,       ///< of a request and those before it; type: status; detail: how many requests had been made
  grant = 5,   ///< the peer gets a key to memory; type: of access; bytes; detail: key
  read = 6,    ///< a READ was prepared: bytes; detail: key
  write = 7,   ///< a WRITE was prepared: the same
  settle = 8,  ///< a call is over here; type: 1 good, 0 not; method; detail: since its request, of 256 ns
  state = 9,   ///< type: as the state of a session in the counters page, and 4: down
  ended = 10,  ///< the session ends; rows of `text` say why
  text = 11,   ///< 16 bytes of text in place of the four numbers; goes on from the row before
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
