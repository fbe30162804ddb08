// The shared memory of the limit: a page of flags, two rings of 64-byte slots and a pool for payloads, all in
// one memfd. Each ring has one producer (the side with that number) and one consumer (the other side). The
// rings have no flow control: JS keeps fewer calls in flight than a ring has slots, so a producer never meets
// an unread slot. Called by the pump and the addon, on the thread of the event loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace limit {

inline constexpr std::uint32_t kSlots = 1024;  ///< a power of two, twice the most calls in flight
inline constexpr std::uint32_t kSlotBytes = 64;
inline constexpr std::size_t kRingsOffset = 4096;
inline constexpr std::size_t kPoolOffset = kRingsOffset + 2 * std::size_t{kSlots} * kSlotBytes;
/// Three times 8 buffers of 16 MiB: requests, the server's copies, answers. All are page-aligned, since
/// memcpy is several times slower on some CPUs when the target lies a few bytes further into its page than
/// the source; and 17 pages apart, because at a power of two they would share cache sets.
inline constexpr std::size_t kPoolBufferBytes = (std::size_t{16} << 20) + 17 * std::size_t{4096};
inline constexpr std::size_t kPoolBytes = std::size_t{3} * 8 * kPoolBufferBytes;
inline constexpr std::size_t kBytes = kPoolOffset + kPoolBytes;

/// The words that one side writes and the other reads; a separate cache line for each rate of change.
struct Side {
  alignas(64) std::atomic<std::uint32_t> published;  ///< complete slots of its ring since the start
  alignas(64) std::atomic<std::uint32_t> sleeping;   ///< 1: ring its eventfd after publishing
  alignas(64) std::atomic<std::uint32_t> cpu;        ///< where it last ran
};
struct Shared {
  Side side[2];
};
static_assert(sizeof(Shared) <= kRingsOffset);

/// Creates a memfd of kBytes and one eventfd per side, to be inherited by both ends. Returns false with errno
/// set.
bool create(int& memory, int (&wake)[2]);
/// Returns null with errno set.
Shared* map(int memory);

}  // namespace limit
