// What soft-iWARP's driver gets wrong in requests that it is given (driver.h has the kernel versions). Made
// by make_workaround(), on the device's thread.
//
// What follows a READ completes before it unless it is fenced, and a READ cannot be. A receive without an
// entry is refused, so it gets one of no bytes, which to InfiniBand would mean 2 GiB.
//
// The only entry of a request, where it has up to 32 bytes, is copied by the driver itself, and when it
// crosses a page the copy is taken from the wrong place (siw_try_1seg()). Two entries go another way. What
// READs ask for is sent in the same way, without any request of ours: Capabilities::one_page_read_max.
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
