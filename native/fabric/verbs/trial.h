// Tests two features that drivers report but that do not always work, before anything else uses the device.
// The test connects two queue pairs of the device to each other. This code is called when a device is opened,
// on the thread of that device.
//
// The features are memory windows and inline data. Some drivers report windows but have none, and some
// allocate windows that cannot be bound. Some drivers accept the flag for inline data and ignore it. A
// session that relied on such a feature would fail with its first large or small call.
#pragma once

#include <string>

#include "fabric/verbs/port.h"

namespace rdma_rpc::fabric::verbs {

struct Trial {
  /// The reason why the device could not be tested. In that case its own report is believed. The text is
  /// empty when the device was tested.
  std::string why_not_tried;
  std::string why_no_windows;  ///< empty when windows work, or when they were not tested
  std::string why_no_inline;   ///< empty when inline data arrives
};

/// The features that the device reports and that are to be tested.
struct Promised {
  bool windows;
  std::uint32_t inline_bytes;
};

/// Takes one to some hundred microseconds on a NIC, and two seconds at most.
Trial try_out(ibv_pd* pd, const Port& port, const Promised& promised);

}  // namespace rdma_rpc::fabric::verbs
