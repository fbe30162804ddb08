// The shm fabric: an RDMA device made of shared memory, between two processes (or two devices of one process)
// on one Linux host. Opened by the binding and by tests; everything after that goes through fabric.h, on the
// device's thread.
//
// Nothing has a name in the file system: memory is memfds, the wake-up is a pipe, and the peer reaches both
// through /proc/<pid>/fd, where the kernel checks its right to. The peers must therefore run as the same
// user, be dumpable and see each other's pids; connect() says so when they do not. A device does not survive
// fork(): open it in the child.
//
// A device by descriptors is for peers of other users and containers. Nothing is opened through /proc:
// what a peer needs goes over a unix connection of the queue pair (control_connection.h), and so do wake-ups.
// Its peers see its table of keys and the memory in which a receive has been posted or a right has been
// given, and no other memory of the process. All peers of one device see that: open one for each that is not
// to see another's.
//
// What is particular to this fabric:
//  - READs and WRITEs are copies by the initiator's CPU. They are done when post_send returns, which takes
//    that long.
//  - Receives and remote rights work fastest on memory of alloc_memory(). Other memory is reached by
//    process_vm_readv and process_vm_writev where the system allows it (Capabilities::exposes_any_memory);
//    where it does not, post_recv on such memory completes with loc_prot_err and bind_mw with mw_bind_err.
//  - A peer stopped in the middle of a copy into revoked memory is waited for at most
//    ShmOptions::revoke_grace_us; then our pages are replaced under it. That cannot be done for memory
//    outside alloc_memory(), where a revocation completes only when the peer runs on or is dead.
//  - The other side is trusted not to bypass this code, since it runs as the same user: a hostile one can
//    write what it has mapped. Whatever it writes into rings and tables can cost only its own queue pairs;
//    who clears the announcements of others (queue/announcements.h) keeps their messages waiting.
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
  /// A READ or WRITE looks at its key again after so many.
  std::size_t copy_chunk_bytes = std::size_t{256} << 10;
  /// How long a revocation waits for a copy in progress before it replaces the pages.
  std::uint32_t revoke_grace_us = 20'000;
  /// False: never use process_vm_*, as if the system forbade it.
  bool any_memory = true;
  /// For peers that are reached by a unix socket, see above. Those of one kind cannot connect to the other.
  bool by_descriptors = false;
  /// By descriptors: how long the peer may take to answer when it is connected to.
  std::uint32_t connect_timeout_ms = 4'000;
  /// Queue pairs that a completion queue watches (completion_queue.h): at most so many, since to look into a
  /// ring in vain costs some ns, and those that are idle only as long as there are so few. An announcement in
  /// its place costs two words that travel between the caches of both sides.
  std::uint32_t watched_max = 16, watched_min = 4;
  /// One of them may come or go after so many polls.
  std::uint32_t polls_per_hand = 64;
  /// After so many cells of a queue pair's ring its peer may begin again with the first one, once all has
  /// been read: a KiB, since with a thousand queue pairs it is the rings that do not fit the cache.
  std::uint32_t lap_cells = 16;
  /// Tests only: called in the initiator after each check of the key and before the copy it allows, with the
  /// bytes done.
  std::function<void(std::uint64_t bytes_done)> before_chunk = {};
};

/// Opens a device. Null when the system refuses; `error` then says what and why.
std::unique_ptr<Device> open_shm_device(const ShmOptions& options, std::string* error);

/// The address of a passive queue pair by descriptors, with the path of the unix socket where its process (or
/// who hands over to it: hand_off(), acceptor.h) is to be dialled. Empty, and why, when one of the two is
/// none.
std::vector<std::byte> shm_address_via(std::span<const std::byte> address, const std::string& path,
                                       std::string* error);

}  // namespace rdma_rpc::fabric
