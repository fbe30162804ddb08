// Describes the position of an address in shared memory. Both sides of a model are in one process, which maps
// each segment twice, so the position consists of the file and the offset. Memory uses this file.
#pragma once

#include <cstdint>
#include <vector>

namespace rdma_rpc::fabric::model {

class Places {
 public:
  static constexpr std::uint64_t kPrivate = 0;
  /// Returns the same number for all mappings of a byte, and a different number for each byte. Returns
  /// kPrivate for memory that is not shared.
  std::uint64_t of(const void* address);
  /// Forgets all mappings, because some may have been removed since.
  void forget() { mappings_.clear(); }

 private:
  struct Mapping {
    std::uintptr_t begin, end;
    std::uint64_t place;  ///< position of the first byte
  };
  void read();
  const Mapping* find(std::uintptr_t address) const;
  std::vector<Mapping> mappings_;
};

}  // namespace rdma_rpc::fabric::model
