// What a kind of NIC can do and how it behaves. A test takes a profile and changes one trait. Values.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace rdma_rpc::nic {

struct Profile {
  std::string name = "nic0";
  ibv_device_attr attributes{};
  std::uint32_t inline_max = 256;
  /// False when the driver accepts IBV_SEND_INLINE and ignores it, so that it needs the keys of the entries
  /// (found by reading providers/mana of rdma-core).
  bool copies_inline = true;
  bool allocates_windows = true;
  /// False when a bind completes with an error, though windows can be allocated.
  bool binds_windows = true;
  /// The peer of a queue pair that ends is ended, too, as the good-bye of rdma_cm does it.
  bool peers_notice = false;
  /// False where the provider makes no RC queue pair.
  bool has_rc = true;
  /// False where it makes none of UC or UD.
  bool has_uc = true, has_ud = true;
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  /// False where the driver refuses a registration with a flag that it does not know.
  bool takes_relaxed_ordering = true;
  /// P_Keys of the port; a queue pair cannot be in a partition beyond them.
  int pkeys = 2;
  /// Which queue of a queue pair in ERR is flushed first. The specification leaves it open.
  bool flushes_sends_first = false;
  /// A queue pair with shared receives that goes to ERR reports IBV_EVENT_QP_LAST_WQE_REACHED.
  bool reports_last_receive = true;
  /// A completion is seen only after this number of polls, as if the device wrote it late.
  std::uint32_t late_polls = 0;
  /// Each event of a completion queue or a port comes twice.
  bool doubles_events = false;
  /// A completion queue has one entry less than a power of two, and so more entries than were asked for.
  bool rounds_queues = true;
  /// Each Nth SEND finds that a page of the receiver is on disk, and is to be sent again; 0: none does.
  std::uint32_t page_fault_every = 0;
  /// What each control call takes. On real NICs it is a command to the firmware.
  std::chrono::nanoseconds command{0};
  /// The device's own code of a failed completion.
  std::uint32_t vendor_err = 0;
};

/// A powerful NIC without bad habits.
inline Profile capable() {
  Profile profile;
  ibv_device_attr& attr = profile.attributes;
  attr.vendor_id = 0x1234;
  attr.phys_port_cnt = 1;
  attr.max_qp = attr.max_mr = attr.max_mw = attr.max_cq = attr.max_srq = 100'000;
  attr.max_qp_wr = attr.max_srq_wr = 16'384;
  attr.max_cqe = 1 << 20;
  attr.max_mcast_grp = 1024;
  attr.max_sge = attr.max_sge_rd = 16;
  attr.max_mr_size = UINT64_MAX;
  attr.max_qp_rd_atom = attr.max_qp_init_rd_atom = 16;
  attr.max_res_rd_atom = attr.max_qp * attr.max_qp_rd_atom;
  attr.atomic_cap = IBV_ATOMIC_HCA;
  attr.device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  return profile;
}

}  // namespace rdma_rpc::nic
