// Creates and maps the limit's shared memory. The addon calls it once per process.
#include "shared.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

namespace limit {

bool create(int& memory, int (&wake)[2]) {
  memory = memfd_create("rdma-rpc-bench-limit", 0);
  if (memory < 0 || ftruncate(memory, static_cast<off_t>(kBytes)) != 0) return false;
  for (int& fd : wake) {
    fd = eventfd(0, EFD_NONBLOCK);
    if (fd < 0) return false;
  }
  return true;
}

Shared* map(int memory) {
  void* base = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  return base == MAP_FAILED ? nullptr : static_cast<Shared*>(base);
}

}  // namespace limit
