// Tries out what drivers promise and some do not keep: with a pair of queue pairs of the device that are
// connected to each other, before anything else uses it. Called when a device is opened, on its thread.
//
// Memory windows: some drivers have none, and some allocate windows that cannot be bound. Inline data: some
// take the flag and ignore it. A session that relied on either would fail with its first large or small call.
#pragma once

#include <string>

#include "fabric/verbs/port.h"

namespace rdma_rpc::fabric::verbs {

struct Trial {
  /// Why the device could not be tried, so that what it says of itself has to do; empty when it was.
  std::string why_not_tried;
  std::string why_no_windows;  ///< empty when windows work, or were not asked for
  std::string why_no_inline;   ///< empty when inline data arrives
};

/// What to try, as the device says it of itself.
struct Promised {
  bool windows;
  std::uint32_t inline_bytes;
};

/// Takes one to some hundred microseconds on a NIC, and two seconds at most.
Trial try_out(ibv_pd* pd, const Port& port, const Promised& promised);

}  // namespace rdma_rpc::fabric::verbs
