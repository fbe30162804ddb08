// The shared memory of the limit: a page of flags, two rings of 64-byte slots and a pool for payloads, all of
// them in one memfd. Each ring has one producer (the side with that number) and one consumer (the other
// side). The rings have no flow control: JS keeps fewer calls in flight than a ring has slots, so a producer
// never meets an unread slot. The pump and the addon use it, on the thread of the event loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace limit {

/// a power of two, twice the maximum number of calls in flight
inline constexpr std::uint32_t kSlots = 1024;
inline constexpr std::uint32_t kSlotBytes = 64;
inline constexpr std::size_t kRingsOffset = 4096;
inline constexpr std::size_t kPoolOffset = kRingsOffset + 2 * std::size_t{kSlots} * kSlotBytes;
/// The pool has three times 8 buffers of 16 MiB, for requests, the server's copies, and answers. All buffers
/// are page-aligned, because memcpy is several times slower on some CPUs when the target lies a few bytes
/// further into its page than the source. They are 17 pages apart, because at a power of two they would share
/// cache sets.
inline constexpr std::size_t kPoolBufferBytes = (std::size_t{16} << 20) + 17 * std::size_t{4096};
inline constexpr std::size_t kPoolBytes = std::size_t{3} * 8 * kPoolBufferBytes;
inline constexpr std::size_t kBytes = kPoolOffset + kPoolBytes;

/// The words that one side writes and the other reads. Words that change at different rates have separate
/// cache lines.
struct Side {
  /// The number of complete slots of the side's ring since the start.
  alignas(64) std::atomic<std::uint32_t> published;
  alignas(64) std::atomic<std::uint32_t> sleeping;  ///< 1 when its eventfd must be rung after publishing
  alignas(64) std::atomic<std::uint32_t> cpu;       ///< the CPU on which the side last ran
};
struct Shared {
  Side side[2];
};
static_assert(sizeof(Shared) <= kRingsOffset);

/// Creates a memfd of kBytes and one eventfd per side, which both ends inherit. Returns false on failure,
/// with errno set.
bool create(int& memory, int (&wake)[2]);
/// Returns null on failure, with errno set.
Shared* map(int memory);

}  // namespace limit
