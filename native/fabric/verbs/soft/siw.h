// Works around defects of soft-iWARP's driver in the handling of requests (driver.h has the kernel versions).
// Made by make_workaround(), on the device's thread.
//
// A request after a READ completes before it unless it is fenced, and a READ cannot be fenced. A receive
// without an entry is refused, so it gets one of 0 bytes, which would mean 2 GiB to InfiniBand.
//
// If a request has a single entry of up to 32 bytes, the driver copies it itself, and if the entry crosses a
// page the copy is taken from the wrong place (siw_try_1seg()). Two entries take another path. Responses to
// READs are sent in the same way, without a request of this side: Capabilities::one_page_read_max.
#pragma once

#include "fabric/verbs/soft/workaround.h"

namespace rdma_rpc::fabric::verbs::soft {

/// MAX_HDR_INLINE of the driver.
inline constexpr std::uint32_t kShortEntryBytes = 32;

class Siw final : public Workaround {
 public:
  void amend(std::span<const SendWr> requests, std::uint32_t first, std::span<ibv_send_wr> chain) override;
  void amend(std::span<ibv_recv_wr> chain) override;
};

}  // namespace rdma_rpc::fabric::verbs::soft
