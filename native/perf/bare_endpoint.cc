// See bare_endpoint.h.
#include "perf/bare_endpoint.h"

namespace rdma_rpc::perf {

std::unique_ptr<Endpoint> make_bare_endpoint(const fabric::VerbsOptions& device,
                                             const EndpointOptions& options, std::string* error) {
  const auto open = reinterpret_cast<OpenBare>(fabric::verbs_entry(kOpenBare, error));
  return open == nullptr ? nullptr : std::unique_ptr<Endpoint>(open(device, options, error));
}

}  // namespace rdma_rpc::perf
