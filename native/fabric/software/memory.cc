// See memory.h.
#include "fabric/software/memory.h"

namespace rdma_rpc::fabric::software {
namespace {

KeyEntry unbound(Window* window) {
  KeyEntry entry;
  entry.kind = KeyEntry::Kind::unbound;
  entry.window = window;
  return entry;
}

}  // namespace

Region::Region(Protection& protection, KeyEntry& entry, std::uint32_t key) : protection_(protection) {
  addr_ = entry.addr;
  length_ = entry.length;
  lkey_ = key;
  if ((entry.access & kRemoteAccess) != 0) rkey_ = key;
  entry.region = this;
  ++protection_.counters.memory_regions;
  protection_.counters.memory_bytes += length_;
}

Region::~Region() {
  protection_.keys.remove(lkey_);
  --protection_.counters.memory_regions;
  protection_.counters.memory_bytes -= length_;
}

Window::Window(Protection& protection) : protection_(protection) {
  rkey_ = protection_.keys.add(unbound(this));
  ++protection_.counters.memory_windows;
}

Window::~Window() {
  protection_.keys.remove_all_of(this);
  --protection_.counters.memory_windows;
}

std::uint32_t Window::next_key() {
  const std::uint32_t key = protection_.keys.add(unbound(this));
  if (key != 0) rkey_ = key;
  return key;
}

std::unique_ptr<MemoryRegion> register_memory(Protection& protection, void* addr, std::size_t length,
                                              std::uint32_t access, std::string* error) {
  KeyEntry entry;
  entry.kind = KeyEntry::Kind::region;
  entry.access = access;
  entry.addr = reinterpret_cast<std::uintptr_t>(addr);
  entry.length = length;
  const std::uint32_t key = protection.keys.add(entry);
  if (key != 0) return std::make_unique<Region>(protection, *protection.keys.find(key), key);
  if (error != nullptr) *error = "no memory key is left (2^24 in use)";
  return nullptr;
}

std::unique_ptr<MemoryWindow> alloc_window(Protection& protection) {
  auto window = std::make_unique<Window>(protection);
  return window->rkey() != 0 ? std::move(window) : nullptr;
}

}  // namespace rdma_rpc::fabric::software
