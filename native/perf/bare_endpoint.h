// An endpoint on libibverbs alone: no fabric of ours between, and what fabrics have no use for: atomic
// operations, unreliable connections and datagrams. In the plug-in for RDMA devices (bare/), which is loaded
// when one is asked for. See endpoint.h for threads.
#pragma once

#include <memory>
#include <string>

#include "fabric/verbs_loader.h"
#include "perf/endpoint.h"

namespace rdma_rpc::perf {

enum class Transport : std::uint8_t { rc, uc, ud };

/// Null, and why.
std::unique_ptr<Endpoint> make_bare_endpoint(const fabric::VerbsOptions& device, Transport transport,
                                             const EndpointOptions& options, std::string* error);

/// The plug-in's entry. The number changes with this header and with endpoint.h.
using OpenBare = Endpoint* (*)(const fabric::VerbsOptions& device, Transport transport,
                               const EndpointOptions& options, std::string* error);
inline constexpr char kOpenBare[] = "rdma_rpc_open_bare_1";

}  // namespace rdma_rpc::perf
