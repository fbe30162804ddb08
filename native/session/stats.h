// Counters of a context since its start: plain additions on the hot path, read by NativeContext.stats().
#pragma once

#include <cstdint>

namespace rdma_rpc::session {

struct Stats {
  std::uint64_t calls = 0, requests = 0;  ///< a stream is one, its parts are none
  std::uint64_t stream_messages_sent = 0, stream_messages_received = 0;
  std::uint64_t inline_sends = 0, eager_sends = 0;
  std::uint64_t segmented_messages = 0;  ///< sent in several of those
  std::uint64_t bulk_reads = 0, bulk_read_bytes = 0, bulk_writes = 0, bulk_write_bytes = 0;
  std::uint64_t bulk_requests = 0, bulk_responses = 0;  ///< counted for calls and for parts of streams
  std::uint64_t reply_buffers_predicted = 0, reply_buffers_asked = 0;
  std::uint64_t sent_bytes = 0, received_bytes = 0;  ///< in frames; those of READs and WRITEs are beside them
  std::uint64_t completions = 0;
  std::uint64_t stalls = 0, stalled_ns = 0;  ///< frames had to wait for the peer's credits or for room
  std::uint64_t credit_frames = 0, protocol_errors = 0, late_responses = 0;
  std::uint64_t calls_released_late = 0;    ///< calls whose callers were notified before the peer answered
  std::uint64_t calls_pending_release = 0;  ///< those that the peer has not answered yet
};

}  // namespace rdma_rpc::session
