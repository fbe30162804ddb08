// Exposes a call's memory to the peer. This file has the protection modes, the pool of memory windows, and
// the references that keep the memory alive during the call. This file is used by the client endpoint of a
// session, on the context's thread. The pool belongs to the context.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/free_list.h"
#include "memory/arena.h"
#include "session/wire.h"

namespace rdma_rpc::session {

enum class Exposure : std::uint8_t {
  automatic,  ///< window if the device has type-2 windows, otherwise staging
  window,     ///< a key that lasts one call: the client binds it, and it is invalidated when the call ends
  staging,    ///< peers can access only the session's staging memory; the memory of calls is copied
  shared,  ///< peers get the keys of the registrations themselves, and are trusted with all memory of calls
};

const char* to_string(Exposure exposure);

/// Windows are created once and bound often: on a NIC, creating a window is a system call, and binding one is
/// not.
class WindowPool {
 public:
  explicit WindowPool(fabric::Device& device) : device_(device) {}
  /// Returns null when the device has no more windows.
  std::unique_ptr<fabric::MemoryWindow> take() {
    if (auto window = free_.take()) return std::move(*window);
    return device_.alloc_mw();
  }
  /// Returns a window to the pool. The window must be invalid, or its queue pair must be gone.
  void release(std::unique_ptr<fabric::MemoryWindow> window) { free_.give(std::move(window)); }
  void clear() { free_.clear(); }

 private:
  fabric::Device& device_;
  fabric::FreeList<std::unique_ptr<fabric::MemoryWindow>> free_;
};

/// A gather entry of application or arena memory that a call uses, with the reference that keeps the memory
/// alive: an arena block or a registration.
struct GatherEntry {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  const fabric::MemoryRegion* region = nullptr;
  memory::BlockId block = memory::kNoBlock;  ///< holds one reference to it
  /// Key of the registration, which is pinned in the MR cache; 0 when there is none.
  std::uint64_t mr_key = 0;
  bool lent = false;  ///< the application can access this memory, and may change it
  std::shared_ptr<const fabric::Presence> presence{};  ///< null when the memory cannot go away
  std::uint64_t sealed_number = 0;  ///< number of the sealed message; 0 when it is not sealed
};

/// Returns true when the application has transferred memory that a call uses.
inline bool any_memory_gone(const std::vector<GatherEntry>& gather_entries) {
  return std::any_of(gather_entries.begin(), gather_entries.end(), [](const GatherEntry& gather_entry) {
    return gather_entry.presence != nullptr && !gather_entry.presence->present();
  });
}

/// Returns the number of bytes that the gather entries occupy at the receiver: either one after another, or
/// each at its offset in the aligned layout.
template <class GatherEntries>
std::uint64_t extent_of(const GatherEntries& gather_entries, bool aligned, auto bytes_of) {
  std::uint64_t extent = 0;
  for (const auto& gather_entry : gather_entries) {
    if (bytes_of(gather_entry) == 0) continue;
    extent = (aligned ? wire::aligned_offset(extent) : extent) + bytes_of(gather_entry);
  }
  return extent;
}

/// Copies gather entries to `to` in the layout of the receiver. Fills the gaps with 0, because the peer can
/// see them.
template <class GatherEntries>
void lay_out(std::byte* to, const GatherEntries& gather_entries, bool aligned, auto bytes_of, auto data_of) {
  std::uint64_t at = 0;
  for (const auto& gather_entry : gather_entries) {
    const std::uint64_t bytes = bytes_of(gather_entry);
    if (bytes == 0) continue;
    const std::uint64_t from = aligned ? wire::aligned_offset(at) : at;
    std::memset(to + at, 0, from - at);
    std::memcpy(to + from, data_of(gather_entry), bytes);
    at = from + bytes;
  }
}

}  // namespace rdma_rpc::session
