// Allocates anonymous memory from the operating system, which is closed to peers until it is registered.
// Pages are allocated at first use, so unused memory costs only address space. The context owns this object
// and uses it on the context's thread.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace rdma_rpc::session {

class AnonymousMemory {
 public:
  AnonymousMemory() = default;
  /// Returns null when the operating system has refused the memory.
  explicit AnonymousMemory(std::size_t bytes) : bytes_(bytes) {
    void* data =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data != MAP_FAILED) data_ = static_cast<std::byte*>(data);
  }
  AnonymousMemory(AnonymousMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  AnonymousMemory& operator=(AnonymousMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~AnonymousMemory() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rdma_rpc::session
