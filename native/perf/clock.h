// The time of the system, for limits and for what a whole step takes.
#pragma once

#include <cstdint>

namespace rdma_rpc::perf {

std::uint64_t now_ns();

}  // namespace rdma_rpc::perf
