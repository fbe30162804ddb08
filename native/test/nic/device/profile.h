// Defines the capabilities and the behaviour of a kind of NIC. A test takes a profile and changes one trait
// of it.
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
  /// True when the end of a queue pair also ends its peer, as the disconnect message of rdma_cm does.
  bool peers_notice = false;
  /// False if the provider makes no RC queue pair.
  bool has_rc = true;
  /// False if the driver makes no UC or UD queue pairs.
  bool has_uc = true, has_ud = true;
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  /// False if the driver refuses a registration with a flag that it does not know.
  bool takes_relaxed_ordering = true;
  /// Number of P_Keys of the port. A queue pair with a larger P_Key index is refused.
  int pkeys = 2;
  /// True when a queue pair in ERR flushes its sends before its receives. The specification allows both
  /// orders.
  bool flushes_sends_first = false;
  /// True when a queue pair with shared receives that goes to ERR reports IBV_EVENT_QP_LAST_WQE_REACHED.
  bool reports_last_receive = true;
  /// Number of polls that do not return a completion, as if the device had written the completion late.
  std::uint32_t late_polls = 0;
  /// True when each event of a completion queue or a port comes twice.
  bool doubles_events = false;
  /// True when the size of a completion queue is rounded up to one less than a power of two.
  bool rounds_queues = true;
  /// Every Nth SEND needs a page of the receiver that is on disk, and has to be sent again; 0 means no SEND.
  std::uint32_t page_fault_every = 0;
  /// Duration of each control call, which is a command to the firmware on real NICs.
  std::chrono::nanoseconds command{0};
  /// The device's own error code in a failed completion.
  std::uint32_t vendor_err = 0;
};

/// Returns a powerful NIC without defects.
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
