// The counters page of a context: what other processes of the same user can read of it while it runs, and
// after it has been stopped. Shared memory without a name that is found through /proc/PID/fd
// (runtime/counters): the kernel lets nobody else of other users at it, and nothing is left when the process
// dies. The page says itself what lies where, so that tools of other versions can read it.
// Made and written by Context on its thread; nobody in this process reads it, so plain stores do.
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
  /// `state`: 0 none, 1 connecting, 2 ready, 3 ending.
  std::uint64_t state, number, client, in_flight, credits, credits_max, waiting;
  std::uint64_t frames_in, frames_out, bytes_in, bytes_out, stalls, stalled_ns;
  /// What it promises: 1 nothing, 2 peer, 3 bound, 4 sealed; 0: nobody has said so.
  std::uint64_t security;
  char peer[kPeerNameBytes];
};
static_assert(sizeof(SessionRow) == 256);

/// Sessions that have a row; those beyond are counted only.
inline constexpr std::uint32_t kSessionRows = 256;
inline constexpr std::size_t kCountersMax = 512;

class CountersPage {
 public:
  /// `published`: as a descriptor that others may find; else, and where the system has no memory for that,
  /// this process alone has it. Null: there is no memory at all.
  static std::unique_ptr<CountersPage> open(bool published);
  ~CountersPage();
  CountersPage(const CountersPage&) = delete;
  CountersPage& operator=(const CountersPage&) = delete;

  /// Before anything else can be read: the names of the counters, and of what the page belongs to.
  void describe(std::span<const char* const> names, std::string_view fabric, std::string_view device);
  /// In the order of the names.
  std::uint64_t* counters();
  SessionRow* sessions();
  Latencies& latencies() { return *latencies_; }
  EventRings events();
  /// What the thread does: awake since its last turn, or asleep.
  void turn(std::uint64_t now_ns, bool awake);

 private:
  CountersPage(int fd, std::byte* data) : fd_(fd), data_(data) {}
  int fd_;
  std::byte* data_;
  std::unique_ptr<Latencies> latencies_;
};

}  // namespace rdma_rpc::telemetry
