// Counts allocations (operator new) of the calling thread, to test the rule that the hot path allocates
// nothing.
#pragma once

#include <cstdint>

namespace rdma_rpc::fabric::test {

std::uint64_t allocations_so_far();
/// A device that is part of the test calls this with the count from before its own allocations, so that they
/// are not counted.
void forget_allocations_since(std::uint64_t before);

template <typename Body>
std::uint64_t count_allocations(Body&& body) {
  const std::uint64_t before = allocations_so_far();
  body();
  return allocations_so_far() - before;
}

}  // namespace rdma_rpc::fabric::test
