// Declares an endpoint that uses libibverbs alone, without our fabrics, and with operations that they do not
// use: atomic operations, unreliable connections and datagrams. The code (bare/) is a part of the plug-in for
// RDMA devices, which is loaded on demand. endpoint.h describes the threads.
#pragma once

#include <memory>
#include <string>

#include "fabric/verbs_loader.h"
#include "perf/endpoint.h"

namespace rdma_rpc::perf {

/// Returns null, with the reason in `error`, when the endpoint cannot be opened.
std::unique_ptr<Endpoint> make_bare_endpoint(const fabric::VerbsOptions& device,
                                             const EndpointOptions& options, std::string* error);

/// The plug-in's entry point. The number in its name changes with this header and with endpoint.h.
using OpenBare = Endpoint* (*)(const fabric::VerbsOptions& device, const EndpointOptions& options,
                               std::string* error);
inline constexpr char kOpenBare[] = "rdma_rpc_open_bare_2";

}  // namespace rdma_rpc::perf
