// The flight recorder keeps the last protocol events of each session in rings of the counters page. The rings
// can be read while the process runs, hangs or is stopped (`rdma-rpc trace`), and after a session has failed.
// The same events are USDT probes (probes.h). This code is called by sessions at each protocol step, on the
// context's thread. The cost of an event is writing an entry of 32 bytes. Other processes only read.
//
// The time of an event is the time of its event-loop iteration. Reading a clock would cost more than writing
// the entry. Events within one iteration need no times of their own, because the order of the entries shows
// which came first. The recorder is always on, because failures are seldom expected.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "telemetry/probes.h"
#include "telemetry/protocol_event.h"

namespace rdma_rpc::telemetry {

/// Number of entries of a ring, a power of two. A ring has 128 KiB, but only its written pages use memory.
inline constexpr std::uint32_t kEventRows = 4096;
/// Number of rings of a context. A session uses the ring of its index. When there are more sessions than
/// rings, several sessions share a ring.
inline constexpr std::uint32_t kEventRings = 32;
/// Limit of the length of the reason that is recorded when a session ends, in bytes.
inline constexpr std::size_t kReasonBytesMax = 256;

/// The rings in the page, one behind the other, and for each ring the number of entries written so far.
struct EventRings {
  EventRow* rows;
  std::uint64_t* counts;
};

/// Writes the events of one session.
class Recorder {
 public:
  /// `index` is the index of the session in its context; `now_ns` is the time of the current event-loop
  /// iteration.
  Recorder(const EventRings& rings, const std::uint64_t& now_ns, std::uint32_t session, std::uint32_t index)
      : rows_(rings.rows + std::size_t{index % kEventRings} * kEventRows),
        count_(rings.counts + index % kEventRings),
        now_ns_(now_ns),
        session_(session) {}

  /// `header` has the fields of wire::Header.
  template <class Header>
  void frame_in(const Header& header, std::uint32_t bytes) const {
    probes::frame_in(session_, header.type, header.call, bytes);
    add(EventKind::frame_in, header.type, header.flags, header.call, header.method, bytes, header.credits);
  }
  template <class Header>
  void frame_out(const Header& header, std::uint32_t bytes) const {
    probes::frame_out(session_, header.type, header.call, bytes);
    add(EventKind::frame_out, header.type, header.flags, header.call, header.method, bytes, header.credits);
  }
  void post(std::size_t taken, std::size_t prepared) const {
    const auto of = static_cast<std::uint32_t>(prepared);
    probes::post(session_, static_cast<std::uint32_t>(taken), of);
    add(EventKind::post, 0, 0, 0, 0, of, static_cast<std::uint32_t>(taken));
  }
  void completion(std::uint32_t status, std::uint32_t sequence) const {
    probes::completion(session_, status, sequence);
    add(EventKind::completion, static_cast<std::uint8_t>(status), 0, 0, 0, 0, sequence);
  }
  void grant(std::uint32_t access, std::uint32_t key, std::uint32_t bytes) const {
    probes::grant(session_, key, bytes);
    add(EventKind::grant, static_cast<std::uint8_t>(access), 0, 0, 0, bytes, key);
  }
  void read(std::uint32_t key, std::uint32_t bytes) const { add(EventKind::read, 0, 0, 0, 0, bytes, key); }
  void write(std::uint32_t key, std::uint32_t bytes) const { add(EventKind::write, 0, 0, 0, 0, bytes, key); }
  /// `time` is in the units of time_of().
  void settle(std::uint32_t call, std::uint32_t method, bool good, std::uint32_t time) const {
    probes::settle(session_, call, method, good ? 1 : 0, time);
    add(EventKind::settle, good ? 1 : 0, 0, call, method, 0, time);
  }
  void state(std::uint8_t state) const { add(EventKind::state, state, 0, 0, 0, 0, 0); }
  void ended(std::string_view reason) const {
    add(EventKind::ended, 0, 0, 0, 0, 0, 0);
    reason = reason.substr(0, kReasonBytesMax);
    for (std::size_t at = 0; at < reason.size(); at += kTextBytesPerRow) {
      std::uint32_t words[4] = {};
      std::memcpy(words, reason.data() + at, std::min(kTextBytesPerRow, reason.size() - at));
      add(EventKind::text, 0, 0, words[0], words[1], words[2], words[3]);
    }
  }

  /// Returns the entry that will be written next.
  const EventRow* next() const { return &rows_[*count_ % kEventRows]; }

  /// Returns this session's entries in the ring, oldest first.
  std::vector<EventRow> rows() const {
    std::vector<EventRow> found;
    const std::uint64_t end = *count_;
    for (std::uint64_t at = end - std::min<std::uint64_t>(end, kEventRows); at < end; ++at) {
      if (const EventRow& row = rows_[at % kEventRows]; row.session == session_) found.push_back(row);
    }
    return found;
  }

 private:
  void add(EventKind kind, std::uint8_t type, std::uint8_t flags, std::uint32_t call, std::uint32_t method,
           std::uint32_t bytes, std::uint32_t detail) const {
    const std::uint64_t at = *count_;
    // Orders the count of the previous entry before the writing of this one. A reader ignores one entry,
    // which may be incomplete.
    std::atomic_thread_fence(std::memory_order_release);
    rows_[at % kEventRows] = {now_ns_, session_, kind, type, flags, 0, call, method, bytes, detail};
    // A reader takes entries below the count.
    std::atomic_ref(*count_).store(at + 1, std::memory_order_release);
  }

  EventRow* rows_;
  std::uint64_t* count_;
  const std::uint64_t& now_ns_;
  std::uint32_t session_;
};

}  // namespace rdma_rpc::telemetry
