// Defines the counters of a context. Counting consists of plain additions on the hot path, and
// NativeContext.stats() reads them.
#pragma once

#include <cstdint>

namespace rdma_rpc::session {

struct Stats {
  std::uint64_t calls = 0, requests = 0;  ///< a stream counts as one call, and its parts do not count
  std::uint64_t stream_messages_sent = 0, stream_messages_received = 0;
  std::uint64_t inline_sends = 0, eager_sends = 0;
  std::uint64_t segmented_messages = 0;  ///< messages that were sent in several frames
  std::uint64_t bulk_reads = 0, bulk_read_bytes = 0, bulk_writes = 0, bulk_write_bytes = 0;
  std::uint64_t bulk_requests = 0, bulk_responses = 0;  ///< counted for calls and for parts of streams
  std::uint64_t reply_buffers_predicted = 0, reply_buffers_asked = 0;
  std::uint64_t sent_bytes = 0, received_bytes = 0;  ///< bytes in frames, without READs and WRITEs
  std::uint64_t completions = 0;
  std::uint64_t stalls = 0, stalled_ns = 0;  ///< frames had to wait for the peer's credits or for room
  std::uint64_t credit_frames = 0, protocol_errors = 0, late_responses = 0;
  std::uint64_t calls_released_late = 0;    ///< calls whose callers were notified before the peer answered
  std::uint64_t calls_pending_release = 0;  ///< calls that the peer has not answered yet
};

}  // namespace rdma_rpc::session
