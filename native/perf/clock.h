// Reads the system's clock, for time limits and the duration of a whole step.
#pragma once

#include <cstdint>

namespace rdma_rpc::perf {

std::uint64_t now_ns();

}  // namespace rdma_rpc::perf
