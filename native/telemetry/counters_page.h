// Writes the counters page of a context: the counters that other processes of the same user can read while
// the context runs or is stopped. The page is unnamed shared memory that other processes find through
// /proc/PID/fd (runtime/counters). The kernel denies access to other users, and nothing remains when the
// process dies. The page contains a description of its own layout, so that tools of other versions can read
// it. Context creates and writes the page on its thread. No other thread of the process reads the page, so
// plain stores suffice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/latencies.h"
#include "telemetry/recorder.h"

namespace rdma_rpc::telemetry {

inline constexpr std::size_t kPeerNameBytes = 144;
struct SessionRow {
  /// Values of `state`: 0 none, 1 connecting, 2 ready, 3 ending.
  std::uint64_t state, number, client, in_flight, credits, credits_max, waiting;
  std::uint64_t frames_in, frames_out, bytes_in, bytes_out, stalls, stalled_ns;
  /// The security that the session provides: 1 none, 2 peer, 3 bound, 4 sealed; 0 when unknown.
  std::uint64_t security;
  char peer[kPeerNameBytes];
};
static_assert(sizeof(SessionRow) == 256);

/// Number of sessions that have an entry; further sessions are only counted.
inline constexpr std::uint32_t kSessionRows = 256;
inline constexpr std::size_t kCountersMax = 512;

class CountersPage {
 public:
  /// Opens a page. `published` asks for memory with a descriptor that other processes can find. When
  /// `published` is false, or when the system refuses such memory, the page is private to this process.
  /// Returns null when no memory is available at all.
  static std::unique_ptr<CountersPage> open(bool published);
  ~CountersPage();
  CountersPage(const CountersPage&) = delete;
  CountersPage& operator=(const CountersPage&) = delete;

  /// Must be called first. Makes the page readable, with the names of the counters and of the context that
  /// the page belongs to.
  void describe(std::span<const char* const> names, std::string_view fabric, std::string_view device);
  /// Returns the counters, in the order of their names.
  std::uint64_t* counters();
  SessionRow* sessions();
  Latencies& latencies() { return *latencies_; }
  EventRings events();
  /// Records the state of the thread: awake since its last event-loop iteration, or asleep.
  void turn(std::uint64_t now_ns, bool awake);

 private:
  CountersPage(int fd, std::byte* data) : fd_(fd), data_(data) {}
  int fd_;
  std::byte* data_;
  std::unique_ptr<Latencies> latencies_;
};

}  // namespace rdma_rpc::telemetry
