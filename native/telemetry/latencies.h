// Records call durations by method: entries of the counters page (counters_page.h), each with a histogram
// whose buckets are an eighth of a power of two wide. The client and server endpoints of a session record
// each call when it ends. Recording a call costs two stores and a few additions, and reads no clock. This
// code runs on the context's thread. Other processes only read the entries.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rdma_rpc::telemetry {

/// Times are kept in units of 2^kTimeShift nanoseconds, as 32 bits, which is enough for calls of up to 18
/// minutes.
inline constexpr std::uint32_t kTimeShift = 8;
inline std::uint32_t time_of(std::uint64_t now_ns) {
  return static_cast<std::uint32_t>(now_ns >> kTimeShift);
}

inline constexpr std::uint32_t kBucketsPerOctave = 8, kOctaves = 27;
/// The first bucket has the calls that are shorter than one unit. The last bucket has all calls that are
/// longer than those of the other buckets.
inline constexpr std::uint32_t kLatencyBuckets = 1 + kBucketsPerOctave * kOctaves;

/// Returns the bucket of a call that took this number of units. Below 8 units some buckets stay empty,
/// because no integer falls into them.
constexpr std::uint32_t latency_bucket(std::uint32_t units) {
  if (units == 0) return 0;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(units)) - 1;
  const std::uint32_t part = octave >= 3 ? (units >> (octave - 3)) & 7 : (units << (3 - octave)) & 7;
  return std::min(1 + octave * kBucketsPerOctave + part, kLatencyBuckets - 1);
}

inline constexpr std::size_t kMethodNameBytes = 128;
/// Layout of an entry in the page. The page contains a description of this layout (counters_page.cc).
struct MethodRow {
  std::uint64_t id, client, calls, failed, total_ns;
  std::uint64_t buckets[kLatencyBuckets];
  char name[kMethodNameBytes];
};

/// Number of entries of a context. The last two entries, one for each side, are for calls whose method has no
/// entry.
inline constexpr std::uint32_t kMethodRows = 128;
/// The id of these two entries; no method has it.
inline constexpr std::uint64_t kOtherMethods = std::uint64_t{1} << 32;
/// Limit of names kept for methods that have not been called.
inline constexpr std::size_t kMethodNamesMax = 8192;

class Latencies {
 public:
  explicit Latencies(MethodRow* rows) : rows_(rows) { slots_.fill(kNone); }

  /// Records the end of a call of `method` that began at `began`.
  void note(std::uint32_t method, bool client, std::uint32_t began, std::uint64_t now_ns, bool good) {
    const std::uint32_t units = time_of(now_ns) - began;
    MethodRow& row = row_of(method, client);
    ++row.calls;
    if (!good) ++row.failed;
    row.total_ns += std::uint64_t{units} << kTimeShift;
    ++row.buckets[latency_bucket(units)];
  }

  /// Sets the display name of a method. Longer names are cut.
  void name(std::uint32_t method, std::string_view text);

 private:
  static constexpr std::uint8_t kNone = 0xff;
  static_assert(kMethodRows <= kNone);

  MethodRow& row_of(std::uint32_t method, bool client) {
    const std::uint32_t key = method ^ (client ? 0x9e3779b9u : 0u);
    const std::uint8_t slot = slots_[key & (slots_.size() - 1)];
    if (slot != kNone && rows_[slot].id == method && rows_[slot].client == (client ? 1 : 0)) {
      return rows_[slot];
    }
    return find(method, client, key);
  }
  MethodRow& find(std::uint32_t method, bool client, std::uint32_t key);
  MethodRow& others(bool client);

  MethodRow* rows_;
  std::uint32_t used_ = 0;
  /// The last used entry for each key of this cache, which may be stale.
  std::array<std::uint8_t, 256> slots_;
  std::unordered_map<std::uint32_t, std::string> names_;
};

}  // namespace rdma_rpc::telemetry
