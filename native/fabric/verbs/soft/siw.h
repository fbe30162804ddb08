// Works around defects of soft-iWARP's driver in the handling of requests (driver.h has the kernel versions).
// make_workaround() makes these objects, on the device's thread.
//
// A request after a READ may complete before the READ unless the request is fenced, and READs themselves
// cannot be fenced. A receive without an entry is refused, so it gets an entry of 0 bytes. (On InfiniBand
// such an entry would mean 2 GiB.)
//
// The driver itself copies an entry when a request has a single entry of up to 32 bytes. If this entry
// crosses a page, the driver copies from the wrong address (siw_try_1seg()). A request with two entries takes
// another path in the driver. Responses to READs have the same defect, although this side posts no request
// for them. Capabilities::one_page_read_max is the remedy.
#pragma once

#include "fabric/verbs/soft/workaround.h"

namespace rdma_rpc::fabric::verbs::soft {

/// The constant MAX_HDR_INLINE of the driver.
inline constexpr std::uint32_t kShortEntryBytes = 32;

class Siw final : public Workaround {
 public:
  void amend(std::span<const SendWr> requests, std::uint32_t first, std::span<ibv_send_wr> chain) override;
  void amend(std::span<ibv_recv_wr> chain) override;
};

}  // namespace rdma_rpc::fabric::verbs::soft
