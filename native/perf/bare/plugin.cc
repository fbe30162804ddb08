// Defines the symbol that perf/bare_endpoint.cc looks up in the plug-in for RDMA devices.
#include "perf/bare/endpoint.h"

extern "C" __attribute__((visibility("default"))) rdma_rpc::perf::Endpoint* rdma_rpc_open_bare_2(
    const rdma_rpc::fabric::VerbsOptions& device, const rdma_rpc::perf::EndpointOptions& options,
    std::string* error) {
  auto made = std::make_unique<rdma_rpc::perf::bare::BareEndpoint>(options.transport);
  *error = made->open(device, options);
  return error->empty() ? made.release() : nullptr;
}
