// Finds out the capabilities of an opened device by trying them. This code is called when a device is opened
// or listed.
#pragma once

#include <string>

#include "fabric/fabric.h"
#include "fabric/verbs/objects.h"
#include "fabric/verbs/soft/driver.h"

namespace rdma_rpc::fabric::verbs {

struct Probed {
  Capabilities capabilities;
  ibv_device_attr attributes{};
  soft::Driver driver = soft::Driver::none;
  std::uint16_t reads_served = 1;  ///< READs of a peer that a queue pair serves at once
  std::uint32_t cq_entries_max = 0;
};

/// Returns "", or why the device cannot be used; the text begins with the device's name.
std::string probe(ibv_pd* pd, Probed* probed);

/// Attributes of a reliable connection with both queues on one completion queue.
ibv_qp_init_attr reliable(ibv_cq* cq, std::uint32_t sends, std::uint32_t receives, std::uint32_t sges,
                          std::uint32_t inline_bytes);

}  // namespace rdma_rpc::fabric::verbs
