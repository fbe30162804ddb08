// The shm fabric is an RDMA device made of shared memory, between two processes (or two devices of one
// process) on one Linux host. The binding and tests open it, and then use it through fabric.h, on the
// device's thread.
//
// The fabric uses no names in the file system: memory consists of memfds, wake-ups use a pipe, and the peer
// reaches both through /proc/<pid>/fd, where the kernel checks the peer's right to open them. Therefore the
// peers must run as the same user, be dumpable and see each other's pids. Otherwise connect() returns an
// error that says so. A device does not survive fork(), so a child process must open its own device.
//
// The variant shm-fd (ShmOptions::by_descriptors) is for peers of other users and containers. This variant
// opens nothing through /proc: wake-ups, and the descriptors that a peer needs, are sent over a unix
// connection of the queue pair (control_connection.h). The peers of shm-fd see the table of keys, the
// memories in which a receive has been posted, and the memories to which a right has been granted. The peers
// see no other memory of the process. All peers of one device see the same memories. A peer that must not see
// another peer's memories needs a device of its own.
//
// Properties of this fabric:
//  - READs and WRITEs are copies by the initiator's CPU. The copies are complete when post_send returns, so
//    post_send takes as long as the copy.
//  - Receives and remote rights work fastest on memory of alloc_memory(). Other memory is reached by
//    process_vm_readv and process_vm_writev if the system allows it (Capabilities::exposes_any_memory). If
//    the system does not allow it, post_recv on such memory completes with loc_prot_err, and bind_mw with
//    mw_bind_err.
//  - If a peer is stopped in the middle of a copy into revoked memory, the owner waits for at most
//    ShmOptions::revoke_grace_us, and then replaces the pages under the copy. That is impossible for memory
//    outside of alloc_memory(); its revocation completes only when the peer continues or is dead.
//  - The other side runs as the same user, so it is trusted not to bypass this code: a hostile peer can write
//    to everything that it has mapped. The words that it writes into rings and tables can harm only its own
//    queue pairs, with one exception: if it clears the announcements of others (queue/announcements.h), it
//    delays their messages.
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
  /// A READ or WRITE checks its key again each time it has copied this number of bytes.
  std::size_t copy_chunk_bytes = std::size_t{256} << 10;
  /// Time in microseconds for which a revocation waits for a copy in progress before it replaces the pages.
  std::uint32_t revoke_grace_us = 20'000;
  /// When this option is false, process_vm_* is never used, as if the system forbade it.
  bool any_memory = true;
  /// Selects shm-fd, for peers that are reached by a unix socket. shm and shm-fd cannot connect to each
  /// other.
  bool by_descriptors = false;
  /// shm-fd: the time in milliseconds that the peer may take to answer a connection attempt.
  std::uint32_t connect_timeout_ms = 4'000;
  /// Limits of the number of queue pairs that a completion queue watches (completion_queue.h). The upper
  /// limit exists because looking into an empty ring costs some ns. Up to the lower limit, idle queue pairs
  /// stay watched. Queue pairs that are not watched need announcements, which move two words between the
  /// caches of both sides.
  std::uint32_t watched_max = 16, watched_min = 4;
  /// Number of polls after which the completion queue may start or stop watching one queue pair.
  std::uint32_t polls_per_hand = 64;
  /// Number of cells after which a peer may begin again at the first cell of the ring, if all messages have
  /// been read. These cells are one KiB in total, because with a thousand queue pairs the whole rings do not
  /// fit the cache.
  std::uint32_t epoch_cells = 16;
  /// For tests only: the initiator calls this function after each check of the key, before the copy that the
  /// check allows. The argument is the number of bytes copied so far.
  std::function<void(std::uint64_t bytes_done)> before_chunk = {};
};

/// Opens a device. Returns null when the system refuses; `error` then contains what was refused, and why.
std::unique_ptr<Device> open_shm_device(const ShmOptions& options, std::string* error);

/// shm-fd: returns the address of a passive queue pair, followed by the path of a unix socket. At that path
/// either its process is reached, or another process that hands the connection over (hand_off(), acceptor.h).
/// Returns an empty address, with the reason in `error`, when the address or the path is invalid.
std::vector<std::byte> shm_address_via(std::span<const std::byte> address, const std::string& path,
                                       std::string* error);

}  // namespace rdma_rpc::fabric
