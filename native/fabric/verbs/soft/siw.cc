// See siw.h.
#include "fabric/verbs/soft/siw.h"

namespace rdma_rpc::fabric::verbs::soft {
namespace {

/// Splits an entry that crosses a page. (The entries of a queue pair have room for the device's maximum,
/// which is more than one.)
void split_at_page(ibv_send_wr& wr) {
  ibv_sge* sges = wr.sg_list;
  const std::uint32_t first = on_page(sges[0].addr, sges[0].length);
  if (first == sges[0].length) return;
  sges[wr.num_sge++] = {sges[0].addr + first, sges[0].length - first, sges[0].lkey};
  sges[0].length = first;
}

}  // namespace

void Siw::amend(std::span<const SendWr>, std::uint32_t, std::span<ibv_send_wr> chain) {
  for (ibv_send_wr& wr : chain) {
    // (The entry of a READ is its destination, which the driver handles correctly; a READ can have only one.)
    if (wr.opcode == IBV_WR_RDMA_READ) {
      wr.send_flags &= ~static_cast<unsigned>(IBV_SEND_FENCE);
      continue;
    }
    wr.send_flags |= IBV_SEND_FENCE;
    const bool copied = wr.num_sge == 1 && wr.sg_list[0].length <= kShortEntryBytes;
    if (copied && (wr.send_flags & IBV_SEND_INLINE) == 0) split_at_page(wr);
  }
}

void Siw::amend(std::span<ibv_recv_wr> chain) {
  for (ibv_recv_wr& wr : chain) wr.num_sge = 1;
}

}  // namespace rdma_rpc::fabric::verbs::soft
