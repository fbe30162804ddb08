// See places.h.
#include "model/places.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>

namespace rdma_rpc::fabric::model {

void Places::read() {
  mappings_.clear();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             &std::fclose);
  if (!maps) return;
  char line[4096];
  while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
    std::uint64_t begin = 0, end = 0, offset = 0, inode = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %" SCNu64, &begin, &end, &offset,
                    &inode) != 4) {
      continue;
    }
    const bool shared = std::strstr(line, "/memfd:") != nullptr;
    mappings_.push_back({begin, end, shared ? (inode << 32) + offset : kPrivate});
  }
}

const Places::Mapping* Places::find(std::uintptr_t address) const {
  const auto after = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                                      [](std::uintptr_t at, const Mapping& each) { return at < each.begin; });
  if (after == mappings_.begin()) return nullptr;
  const Mapping& found = *(after - 1);
  return address < found.end ? &found : nullptr;
}

std::uint64_t Places::of(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const Mapping* mapping = find(at);
  if (mapping == nullptr) {
    read();
    mapping = find(at);
  }
  if (mapping == nullptr || mapping->place == kPrivate) return kPrivate;
  return mapping->place + (at - mapping->begin);
}

}  // namespace rdma_rpc::fabric::model
