// Implements an endpoint on any fabric: sends, writes and reads with the same device, queue pairs and
// completion queue that sessions use. The binding and tests create these objects; endpoint.h describes the
// threads.
#pragma once

#include <memory>
#include <string>

#include "fabric/fabric.h"
#include "perf/endpoint.h"

namespace rdma_rpc::perf {

/// Returns null, with the reason in `error`, when the endpoint cannot be created.
std::unique_ptr<Endpoint> make_fabric_endpoint(std::shared_ptr<fabric::Device> device,
                                               const EndpointOptions& options, std::string* error);

}  // namespace rdma_rpc::perf
