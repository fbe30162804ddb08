// Declares the capabilities of a device, and the reasons why it lacks a feature. This file is part of
// fabric.h. The capabilities are filled in when a device is opened. Users of a device look at its
// capabilities instead of the name of its fabric. The capabilities are plain values, which any thread may
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rdma_rpc::fabric {

/// The smallest page size of any supported system. Larger pages begin at multiples of this number.
inline constexpr std::uint32_t kPageBytes = 4096;
/// Returns how many of the `bytes` bytes at `addr` lie on the first page.
constexpr std::uint32_t on_page(std::uint64_t addr, std::uint32_t bytes) {
  const auto rest = static_cast<std::uint32_t>(kPageBytes - addr % kPageBytes);
  return bytes < rest ? bytes : rest;
}

/// Parts of the verbs that a device may lack. Capabilities::why_not() returns the reason.
enum class Feature : std::uint8_t {
  send_with_imm,
  write_with_imm,
  windows,          ///< type-2 memory windows, local_inv and send_with_inv
  atomics,          ///< compare-and-swap and fetch-and-add
  solicited,        ///< a receiver may sleep until a solicited message arrives
  shared_receives,  ///< receive_queue.h
  srq_limit,        ///< the event of a shared receive queue that has few receives left
  uc,
  ud,
  multicast,
  drain,  ///< the states SQD and SQE
  reset,  ///< a queue pair in ERR can return to INIT
  steps,  ///< a queue pair goes to INIT, RTR and RTS one by one
  xrc,    ///< no fabric has this feature yet
};
inline constexpr std::size_t kFeatures = 14;
/// Returns the feature's name in texts for users, such as "atomics (compare-and-swap, fetch-and-add)".
const char* to_string(Feature feature);

/// The capabilities of a device. No value is taken from a table of device names. Values with `probed` in
/// their names were measured by using the device.
struct Capabilities {
  std::string name;  ///< "shm", "sim" or a device such as "mlx5_0"; for display only, never for decisions
  std::uint32_t port = 0;          ///< port of the device, 0 where devices have no ports; for display only
  std::string path;                ///< how its queue pairs are reached; for display only
  std::uint32_t max_inline = 0;    ///< bytes; a longer send cannot carry the inline flag
  std::uint32_t max_sge = 1;       ///< gather entries of a send or write
  std::uint32_t max_sge_read = 1;  ///< scatter entries of a read
  std::uint32_t max_qp_wr = 0;     ///< the deepest send or receive queue
  /// Number of requests of the device itself in each send queue, besides the user's. NICs round a queue up to
  /// a power of two. A depth that is a power of two minus this number therefore wastes no entries.
  std::uint32_t own_sends = 0;
  std::uint32_t max_srq_wr = 0;      ///< the deepest shared receive queue; 0 when the device has none
  std::uint32_t max_rd_atomic = 16;  ///< outstanding READs per queue pair that make progress at once
  /// Limit of simultaneous alloc_memory() blocks; 0 when only the system limits them.
  std::uint32_t max_memories = 0;
  std::uint64_t max_msg_bytes = 0;            ///< limit of one SEND, READ or WRITE, in bytes
  std::uint32_t max_datagram_bytes = 0;       ///< limit of one SEND on a UD queue pair: the path's MTU
  bool immediate = false;                     ///< rdma_write_with_imm
  bool send_immediate = false;                ///< send_with_imm
  bool atomics = false;                       ///< atomic_cmp_and_swp, atomic_fetch_and_add
  bool solicited = false;                     ///< SendWr::solicited and CompletionQueue::arm_solicited()
  bool uc = false;                            ///< QpType::uc
  bool ud = false;                            ///< QpType::ud and Device::create_ah()
  bool multicast = false;                     ///< QueuePair::attach_multicast()
  bool srq_limit = false;                     ///< ReceiveQueue::arm_limit()
  bool drains = false;                        ///< QueuePair::move_to(): SQD, and SQE back to RTS
  bool resets = false;                        ///< QueuePair::move_to(): ERR to RESET to INIT
  bool steps = false;                         ///< QpOptions::stepwise
  bool windows = false;                       ///< type-2 memory windows, local_inv and send_with_inv
  bool read_sink_needs_remote_write = false;  ///< iWARP
  bool active_side_sends_first = false;       ///< iWARP (MPA)
  bool pins_memory = false;                   ///< registered memory counts against RLIMIT_MEMLOCK
  /// Memory from outside of alloc_memory() may be exposed to the peer, too.
  bool exposes_any_memory = false;
  bool on_demand = false;  ///< access_on_demand for RC SEND, READ and WRITE (explicit ODP)
  bool dmabuf = false;     ///< reg_dmabuf_mr()
  /// The thread that posts a READ or WRITE copies its bytes inside post_send(), and does nothing else until
  /// the copy is complete.
  bool copies_when_posted = false;
  /// The CPU of this process reads the bytes of a send some event-loop iterations after the post, and nothing
  /// is pinned. Memory that may disappear before that (Presence) must therefore be copied to memory that
  /// stays. QueuePair::revoke() and abandon_reads() work on such fabrics.
  bool reads_memory_late = false;
  /// Up to this size, it is cheaper to copy a request from application memory to memory of alloc_memory()
  /// than to have the peer READ it in place. The value is 0 when copying is never cheaper.
  std::uint32_t copied_request_bytes = 0;
  /// Up to this size, it is cheaper to send a message as several SENDs, each copied twice, than to READ or
  /// WRITE memory that is exposed for the message. The value is 0 when SENDs are never cheaper, or when this
  /// has not been measured.
  std::uint32_t segmented_bytes = 0;
  /// Limit of one WRITE, in bytes. On a network that loses packets, a longer WRITE fails too early.
  std::uint64_t max_write_bytes = UINT64_MAX;
  /// A READ of at most this many bytes must lie on one page of the peer's memory.
  std::uint32_t one_page_read_max = 0;
  /// A key gives access to exactly the range that its window was bound to, on its own queue pair. When this
  /// value is false, four things differ. A key gives access to the whole region. A peer's SEND_WITH_INV can
  /// end the window of another queue pair. The sender is not notified when its SEND_WITH_INV is refused.
  /// SEND_WITH_INV may crash the kernel when the window is not bound. Such a device is suitable only for
  /// trusted peers.
  bool exact_windows = true;
  /// When this value is false, a peer that knows the key of a region may READ the region, independent of the
  /// rights that the key has. Such a device is suitable only for trusted peers.
  bool checks_read_rights = true;
  /// An operation that the peer refuses ends at the sender with a status that reports the refusal. When this
  /// value is false, a SEND completes when the network has accepted it, and a refused access is flushed. Only
  /// the end of the connection then shows that an operation was refused.
  bool names_refusals = true;
  /// A peer that once had a right to memory of alloc_memory() may write to that memory at any later time.
  bool peers_keep_access = false;

  /// The reasons why the device lacks features, for why_not(). For a feature without an entry, why_not()
  /// names only the feature.
  std::map<Feature, std::string> reasons = {};
  /// Facts for the owner of a device: features that its driver does not really have, and limits that all
  /// processes share. The facts are whole sentences, for display only.
  std::vector<std::string> notes = {};

  bool has(Feature feature) const;
  /// Returns "" when the device has the feature. Otherwise returns a sentence for the user, with the device
  /// that lacks it and the reason.
  std::string why_not(Feature feature) const;
  /// Returns how many of the peer's `bytes` bytes at `addr` a single READ may fetch.
  std::uint32_t read_bytes(std::uint64_t addr, std::uint32_t bytes) const;
};

inline std::uint32_t Capabilities::read_bytes(std::uint64_t addr, std::uint32_t bytes) const {
  return bytes <= one_page_read_max ? on_page(addr, bytes) : bytes;
}

/// Returns the reason why a device without Capabilities::on_demand refuses access_on_demand.
std::string why_not_on_demand(const Capabilities& capabilities);

/// Returns "" when a device with these capabilities may register that memory, otherwise the reason why it may
/// not. A device can have further reasons of its own.
std::string why_not_register(const void* addr, std::size_t length, std::uint32_t access,
                             const Capabilities& capabilities);

}  // namespace rdma_rpc::fabric
