// Replaces the global allocation functions of this test program by functions that count.
#include "fabric/suite/allocation_count.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t allocations = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* data = std::malloc(bytes > 0 ? bytes : 1)) return data;
  std::abort();
}
// Without this operator the library's own one would be paired with the operator delete below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }

namespace rdma_rpc::fabric::test {

std::uint64_t allocations_so_far() { return allocations; }
void forget_allocations_since(std::uint64_t before) { allocations = before; }

}  // namespace rdma_rpc::fabric::test
