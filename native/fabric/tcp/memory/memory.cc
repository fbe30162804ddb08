// See memory.h.
#include "fabric/tcp/memory/memory.h"

#include "fabric/tcp/device.h"

namespace rdma_rpc::fabric::tcp {
namespace {

Grant unbound(Window* window) {
  Grant grant;
  grant.kind = Grant::Kind::unbound;
  grant.window = window;
  return grant;
}

}  // namespace

Region::Region(Device& device, const Grant& grant, std::uint32_t key) : device_(device) {
  addr_ = grant.addr;
  length_ = grant.length;
  lkey_ = key;
  if ((grant.access & (access_remote_read | access_remote_write)) != 0) rkey_ = key;
  ++device_.counts().memory_regions;
  device_.counts().memory_bytes += length_;
}

Region::~Region() {
  device_.keys().remove(lkey_);
  --device_.counts().memory_regions;
  device_.counts().memory_bytes -= length_;
}

Window::Window(Device& device) : device_(device) {
  rkey_ = device_.keys().add(unbound(this));
  ++device_.counts().memory_windows;
}

Window::~Window() {
  device_.keys().remove_all_of(this);
  --device_.counts().memory_windows;
}

std::uint32_t Window::next_key() {
  const std::uint32_t key = device_.keys().add(unbound(this));
  if (key != 0) rkey_ = key;
  return key;
}

}  // namespace rdma_rpc::fabric::tcp
