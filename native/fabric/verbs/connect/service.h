// The quality of service of a queue pair's packets, and how often it asks a peer that is not ready: from the
// options and from what the peer says. Called when queue pairs connect, on the device's thread.
#pragma once

#include <infiniband/verbs.h>

#include "fabric/verbs/address/address.h"
#include "fabric/verbs_loader.h"

namespace rdma_rpc::fabric::verbs {

/// What is not among the options stays as rdma_cm, or nobody, has set it.
inline void set_service(const VerbsOptions& options, ibv_ah_attr* path) {
  const int traffic_class = options.traffic_class >= 0 ? options.traffic_class : options.tos;
  if (traffic_class >= 0) path->grh.traffic_class = static_cast<std::uint8_t>(traffic_class);
  if (options.service_level >= 0) path->sl = static_cast<std::uint8_t>(options.service_level);
}

/// Endless where the peer says that it may have to page first: the watchdog ends what never comes.
inline std::uint8_t rnr_retries(const VerbsOptions& options, const Address& peer) {
  constexpr std::uint8_t kEndless = 7;
  if (options.rnr_retry >= 0) return static_cast<std::uint8_t>(options.rnr_retry);
  return (peer.ways & way_pauses) != 0 ? kEndless : 0;
}

}  // namespace rdma_rpc::fabric::verbs
