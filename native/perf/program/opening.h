// Opens the endpoint for a test, on a fabric or on libibverbs alone. This file is used by side.cc.
#pragma once

#include <memory>
#include <string>

#include "perf/endpoint.h"
#include "perf/program/words.h"

namespace rdma_rpc::perf {

/// Returns null, with the reason in `error`, when the endpoint cannot be opened.
std::unique_ptr<Endpoint> open_endpoint(const Words& asked, const EndpointOptions& needs, std::string* error);

}  // namespace rdma_rpc::perf
