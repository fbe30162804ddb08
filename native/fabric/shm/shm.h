// The shm fabric: an RDMA device made of shared memory, between two processes (or two devices of one process)
// on one Linux host. Opened by the binding and by tests; everything after that goes through fabric.h, on the
// device's thread.
//
// Nothing has a name in the file system: memory is memfds, wake-ups use a pipe, and the peer reaches both
// through /proc/<pid>/fd, where the kernel checks its right to. The peers must therefore run as the same
// user, be dumpable and see each other's pids; connect() says so when they do not. A device does not survive
// fork(): open it in the child.
//
// The variant shm-fd (ShmOptions::by_descriptors) is for peers of other users and containers. It opens
// nothing through /proc: the descriptors that a peer needs, and wake-ups, go over a unix connection of the
// queue pair (control_connection.h). Its peers see the table of keys and the memories in which a receive has
// been posted or a right has been given, and no other memory of the process. All peers of one device see the
// same memories: open one device for each peer that must not see another's.
//
// Properties of this fabric:
//  - READs and WRITEs are copies by the initiator's CPU. They are complete when post_send returns, so that
//    post_send takes as long as the copy.
//  - Receives and remote rights work fastest on memory of alloc_memory(). Other memory is reached by
//    process_vm_readv and process_vm_writev where the system allows it (Capabilities::exposes_any_memory);
//    where it does not, post_recv on such memory completes with loc_prot_err and bind_mw with mw_bind_err.
//  - If a peer is stopped in the middle of a copy into revoked memory, the owner waits for it for at most
//    ShmOptions::revoke_grace_us; then our pages are replaced under it. That is impossible for memory
//    outside alloc_memory(), where a revocation completes only when the peer continues or is dead.
//  - The other side runs as the same user, so it is trusted not to bypass this code: a hostile one can write
//    to everything that it has mapped. Whatever it writes into rings and tables can harm only its own queue
//    pairs, except that clearing the announcements of others (queue/announcements.h) delays their messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

struct ShmOptions {
  /// A READ or WRITE checks its key again after this number of bytes.
  std::size_t copy_chunk_bytes = std::size_t{256} << 10;
  /// Microseconds for which a revocation waits for a copy in progress before it replaces the pages.
  std::uint32_t revoke_grace_us = 20'000;
  /// When false, process_vm_* is never used, as if the system forbade it.
  bool any_memory = true;
  /// Selects shm-fd, for peers that are reached by a unix socket. The two variants cannot connect to each
  /// other.
  bool by_descriptors = false;
  /// shm-fd: milliseconds within which the peer must answer a connection attempt.
  std::uint32_t connect_timeout_ms = 4'000;
  /// Limits of the queue pairs that a completion queue watches (completion_queue.h). The upper limit exists
  /// because looking into an empty ring costs some ns; up to the lower limit, idle queue pairs stay watched.
  /// The alternative, an announcement, costs two words that travel between the caches of both sides.
  std::uint32_t watched_max = 16, watched_min = 4;
  /// Number of polls after which one queue pair may start or stop to be watched.
  std::uint32_t polls_per_hand = 64;
  /// Number of cells after which a peer may begin again with the first cell of the ring, once all messages
  /// have been read. It is a KiB, since with a thousand queue pairs the rings do not fit the cache.
  std::uint32_t epoch_cells = 16;
  /// For tests only: called in the initiator after each check of the key and before the copy that it allows,
  /// with the number of bytes done.
  std::function<void(std::uint64_t bytes_done)> before_chunk = {};
};

/// Opens a device. Returns null when the system refuses; `error` then says what and why.
std::unique_ptr<Device> open_shm_device(const ShmOptions& options, std::string* error);

/// shm-fd: returns the address of a passive queue pair, followed by the path of the unix socket at which to
/// dial its process (or another process that hands the connection over: hand_off(), acceptor.h). Returns
/// nothing, with the reason in `error`, when the address or the path is invalid.
std::vector<std::byte> shm_address_via(std::span<const std::byte> address, const std::string& path,
                                       std::string* error);

}  // namespace rdma_rpc::fabric
