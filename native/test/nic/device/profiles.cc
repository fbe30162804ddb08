// See profiles.h. A source is a file of Linux ("linux", with the commit that was read) or of rdma-core
// ("rdma-core"), or a public issue. A trait without a source is marked as a guess. A guess may make the
// simulated NIC worse than the real NIC, but never better.
#include "nic/device/profiles.h"

#include <algorithm>

namespace rdma_rpc::nic {
namespace {

Profile without_windows(Profile profile) {
  profile.allocates_windows = profile.binds_windows = false;
  profile.attributes.device_cap_flags = 0;
  profile.attributes.max_mw = 0;
  return profile;
}

void set_reads(Profile* profile, int served, int asked, int of_device) {
  profile->attributes.max_qp_rd_atom = served;
  profile->attributes.max_qp_init_rd_atom = asked;
  profile->attributes.max_res_rd_atom = of_device;
}

/// ConnectX-4 and later. linux drivers/infiniband/hw/mlx5/main.c, mlx5_ib_query_device(): windows 2B, 30
/// gather entries of a READ, max_qp * max_qp_rd_atom for the device. rdma-core providers/mlx5/verbs.c,
/// create_cq(): a completion queue has one entry less than a power of two. We guess 16 READs, the inline
/// size, that receives are flushed before sends, and that completions come two polls late.
Profile mlx5() {
  Profile profile = capable();
  profile.name = "mlx5";
  profile.attributes.vendor_id = 0x02c9;
  profile.attributes.max_sge = profile.attributes.max_sge_rd = 30;
  set_reads(&profile, 16, 16, profile.attributes.max_qp * 16);
  profile.inline_max = 828;
  profile.late_polls = 2;
  profile.vendor_err = 0x68;
  return profile;
}

/// E810. linux drivers/infiniband/hw/irdma/verbs.c at d5dd580deb54, irdma_query_device(): max_res_rd_atom and
/// the kind of atomics are not set, shared receives and windows 2B only from generation 3 on. defs.h: 101
/// inline bytes, 13 fragments. icrdma_hw.h: 32 READs served, 64 asked for. We guess that sends are flushed
/// first, because the driver itself creates the flushed completions.
Profile irdma() {
  Profile profile = without_windows(capable());
  profile.name = "irdma";
  profile.attributes.vendor_id = 0x8086;
  profile.attributes.max_sge = profile.attributes.max_sge_rd = 13;
  profile.attributes.max_srq = profile.attributes.max_srq_wr = 0;
  profile.attributes.atomic_cap = IBV_ATOMIC_NONE;
  set_reads(&profile, 32, 64, 0);
  profile.inline_max = 101;
  profile.flushes_sends_first = true;
  profile.vendor_err = 0x00020008;
  return profile;
}

/// linux drivers/infiniband/hw/bnxt_re/ib_verbs.c at e32d2d7144ef, bnxt_re_query_device(): says that it has
/// windows 2B, max_res_rd_atom is 0, atomics by the PCIe bus. rdma-core providers/bnxt_re/main.c: the library
/// cannot allocate a window. qplib_sp.h: 126 READs, 6 fragments; 96 inline bytes. We guess that there is no
/// event for the last shared receive, and that events come twice.
Profile bnxt_re() {
  Profile profile = capable();
  profile.name = "bnxt_re";
  profile.attributes.vendor_id = 0x14e4;
  profile.allocates_windows = profile.binds_windows = false;
  profile.attributes.max_sge = profile.attributes.max_sge_rd = 6;
  set_reads(&profile, 126, 126, 0);
  profile.inline_max = 96;
  profile.reports_last_receive = false;
  profile.doubles_events = true;
  return profile;
}

/// Kunpeng, HIP09. linux drivers/infiniband/hw/hns/hns_roce_main.c at 29583dfcd2dd, hns_roce_query_device():
/// a READ has one gather entry, no windows, max_res_rd_atom is 0. We guess 128 READs, 64 fragments, 1,024
/// inline bytes, and completion queues of exactly the requested size.
Profile hns() {
  Profile profile = without_windows(capable());
  profile.name = "hns";
  profile.attributes.vendor_id = 0x19e5;
  profile.attributes.max_sge = 64;
  profile.attributes.max_sge_rd = 1;
  set_reads(&profile, 128, 128, 0);
  profile.inline_max = 1024;
  profile.rounds_queues = false;
  return profile;
}

/// Pensando. linux drivers/infiniband/hw/ionic/ionic_ibdev.c at 0eaed89c18ae, ionic_query_device(): windows
/// 2B, no shared receives, atomics, and 16 READs for the whole device. ionic_fw.h: at most 8 fragments. The
/// 64 inline bytes are a guess.
Profile ionic() {
  Profile profile = capable();
  profile.name = "ionic";
  profile.attributes.vendor_id = 0x1dd8;
  profile.attributes.max_sge = profile.attributes.max_sge_rd = 8;
  profile.attributes.max_srq = profile.attributes.max_srq_wr = 0;
  profile.attributes.atomic_cap = IBV_ATOMIC_GLOB;
  set_reads(&profile, 16, 16, 16);
  profile.inline_max = 64;
  return profile;
}

/// Alibaba's elastic RDMA, in its RoCE v2 mode. linux drivers/infiniband/hw/erdma/erdma_verbs.c at
/// f33e46a0c6bd, erdma_query_device(): no shared receives, no windows of type 2 (device_cap_flags has
/// IB_DEVICE_MEM_MGT_EXTENSIONS alone), max_qp * max_ird. We guess 8 READs, 6 fragments (one for a READ), 96
/// inline bytes, and that sends are flushed first.
Profile erdma() {
  Profile profile = without_windows(capable());
  profile.name = "erdma";
  profile.attributes.vendor_id = 0x1ded;
  profile.attributes.max_sge = 6;
  profile.attributes.max_sge_rd = 1;
  profile.attributes.max_srq = profile.attributes.max_srq_wr = 0;
  profile.attributes.atomic_cap = IBV_ATOMIC_GLOB;
  set_reads(&profile, 8, 8, profile.attributes.max_qp * 8);
  profile.inline_max = 96;
  profile.flushes_sends_first = true;
  return profile;
}

/// Azure. linux drivers/infiniband/hw/mana/main.c at 844e31bbaef7, mana_ib_query_device(): no atomics, a
/// completion queue has no more entries than a queue pair. rdma-core providers/mana/wr.c at 1deb440d17fa:
/// inline data and SEND with invalidate are ignored, and posting a bind is EINVAL. We guess 32 READs, 16
/// fragments, and that windows can be allocated.
Profile mana() {
  Profile profile = capable();
  profile.name = "mana";
  profile.attributes.vendor_id = 0x1414;
  profile.attributes.max_cqe = profile.attributes.max_qp_wr;
  profile.attributes.atomic_cap = IBV_ATOMIC_NONE;
  profile.attributes.max_srq = profile.attributes.max_srq_wr = 0;
  set_reads(&profile, 32, 32, profile.attributes.max_qp * 32);
  profile.copies_inline = profile.binds_windows = false;
  return profile;
}

/// Soft-RoCE. linux drivers/infiniband/sw/rxe/rxe_param.h at 018c6837f3e6: 128 READs, 32 fragments, 400
/// inline bytes, 960 shared receive queues. By experiment (native/test/verbs, Linux 6.1 and 6.12): windows
/// 2B.
Profile rxe() {
  Profile profile = capable();
  profile.name = "rxe";
  profile.attributes.vendor_id = 0xffffff;
  profile.attributes.max_sge = profile.attributes.max_sge_rd = 32;
  profile.attributes.max_srq = 960;
  profile.attributes.max_cqe = (1 << 15) - 1;
  set_reads(&profile, 128, 128, 0x3f000);
  profile.inline_max = 400;
  return profile;
}

}  // namespace

std::vector<Profile> connectable() {
  Profile best = capable();
  best.name = "capable";
  return {best, mlx5(), irdma(), bnxt_re(), hns(), ionic(), erdma(), mana(), rxe()};
}

std::vector<Profile> for_suites() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {mlx5(), irdma(), bnxt_re()};
#else
  return connectable();
#endif
}

/// linux drivers/infiniband/hw/efa/efa_verbs.c, efa_create_qp(): returns EOPNOTSUPP for every type except UD
/// and its own SRD.
Profile efa() {
  Profile profile = without_windows(capable());
  profile.name = "efa";
  profile.transport = IBV_TRANSPORT_UNSPECIFIED;
  profile.has_rc = false;
  return profile;
}

/// Apple's technical note TN3205 names the transport "Thunderbolt (100)", which libibverbs does not have.
/// Issue 3162 of ml-explore/mlx: about 100 regions a device. Pull request 9 of hellas-ai/thunderbolt-ibverbs:
/// UC only. We guess 10 queue pairs.
Profile apple() {
  Profile profile = without_windows(capable());
  profile.name = "rdma_en2";
  profile.transport = IBV_TRANSPORT_UNSPECIFIED;
  profile.has_rc = false;
  profile.attributes.max_mr = 100;
  profile.attributes.max_qp = 10;
  return profile;
}

/// linux drivers/infiniband/sw/siw/siw_main.c: node type RNIC. siw.h: 128 READs, 6 fragments, 1 for a READ.
Profile siw() {
  Profile profile = without_windows(capable());
  profile.name = "siw";
  profile.transport = IBV_TRANSPORT_IWARP;
  profile.attributes.vendor_id = 0x626d74;
  profile.attributes.max_sge = 6;
  profile.attributes.max_sge_rd = 1;
  profile.attributes.atomic_cap = IBV_ATOMIC_NONE;
  set_reads(&profile, 128, 128, 0);
  return profile;
}

Profile erdma_iwarp() {
  Profile profile = erdma();
  profile.name = "erdma";
  profile.transport = IBV_TRANSPORT_IWARP;
  return profile;
}

Profile profile_named(const std::string& name) {
  const std::vector<Profile> all = connectable();
  return *std::find_if(all.begin(), all.end(), [&](const Profile& each) { return each.name == name; });
}

}  // namespace rdma_rpc::nic
