// Determines the quality of service of a queue pair's packets, and its retries when the peer is not ready.
// The service and the retries follow from the options and from the peer's address. This code is called when
// queue pairs connect, on the device's thread.
#pragma once

#include <infiniband/verbs.h>

#include "fabric/verbs/address/address.h"
#include "fabric/verbs_loader.h"

namespace rdma_rpc::fabric::verbs {

/// Attributes without an option keep the value that rdma_cm has set, if any.
inline void set_service(const VerbsOptions& options, ibv_ah_attr* path) {
  const int traffic_class = options.traffic_class >= 0 ? options.traffic_class : options.tos;
  if (traffic_class >= 0) path->grh.traffic_class = static_cast<std::uint8_t>(traffic_class);
  if (options.service_level >= 0) path->sl = static_cast<std::uint8_t>(options.service_level);
}

/// Returns the RNR retry count. The number of retries is unlimited when the peer announces that it may have
/// to handle a page fault first. The watchdog ends requests that never complete.
inline std::uint8_t rnr_retries(const VerbsOptions& options, const Address& peer) {
  constexpr std::uint8_t kEndless = 7;
  if (options.rnr_retry >= 0) return static_cast<std::uint8_t>(options.rnr_retry);
  return (peer.ways & way_pauses) != 0 ? kEndless : 0;
}

}  // namespace rdma_rpc::fabric::verbs
