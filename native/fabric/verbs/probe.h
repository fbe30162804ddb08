// What an opened device can do, found out by trying. Called when a device is opened or listed.
#pragma once

#include <string>

#include "fabric/fabric.h"
#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

/// What a driver gets wrong, so that the rest of this folder can put it right.
struct Quirks {
  /// A receive of a SEND_WITH_INV says so by the kernel's number for the flag, not by the library's
  /// (soft-RoCE).
  bool kernel_flags = false;
  /// A receive without an entry is refused (soft-iWARP): it gets one of no bytes, which elsewhere would mean
  /// 2 GiB.
  bool entry_needed = false;
  /// What follows a READ completes before it unless it is fenced, and a READ cannot be (soft-iWARP).
  bool reads_complete_late = false;
  /// A bind that stands behind a packet which is sent again is carried out again, fails, and ends the queue
  /// pair without a word (soft-RoCE): see holding.cc.
  bool binds_run_again = false;
  /// What stands behind a WRITE of several packets may be shifted by a packet when it is sent again
  /// (soft-RoCE): see holding.cc.
  bool writes_shift = false;
  /// It may not carry out what it has until somebody rings the doorbell again (soft-RoCE): see watchdog.h.
  bool oversleeps = false;
  /// Soft-iWARP copies the only entry of a request by itself where it has up to 32 bytes, and takes them from
  /// the wrong place where they cross a page (Linux: siw_try_1seg()). Sends what READs ask for in that way,
  /// too: Capabilities::short_read_max. More than one entry goes another way.
  std::uint32_t short_entry_max = 0;
  /// Some queue in each context is refused (soft-iWARP): see blind_spot.h.
  bool blind_spot = false;
};

struct Probed {
  Capabilities capabilities;
  Quirks quirks;
  std::uint16_t reads_served = 1;  ///< READs of a peer, per queue pair, at once
  std::uint32_t cq_entries_max = 0;
};

/// Empty, or why the device cannot be used, beginning with its name.
std::string probe(ibv_pd* pd, Probed* probed);

/// A reliable connection with both queues on one completion queue.
ibv_qp_init_attr reliable(ibv_cq* cq, std::uint32_t sends, std::uint32_t receives, std::uint32_t sges,
                          std::uint32_t inline_bytes);

}  // namespace rdma_rpc::fabric::verbs
