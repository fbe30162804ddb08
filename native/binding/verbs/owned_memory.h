// Keeps the memory that `rdma-rpc/verbs` has allocated, and the ArrayBuffers over it. The memory stays mapped
// as long as a region or an ArrayBuffer uses it. An application may move the memory to another ArrayBuffer
// with transfer() or structuredClone(); that buffer is unknown here. Node calls the finalizer when the last
// of these buffers is collected. Each JS thread has one list, which VerbsHost uses on that thread.
//
// When a thread ends, Node runs all finalizers, even if a transferred buffer is in use on another thread.
// Before that, Node detaches the buffer that it knows. Therefore each buffer has sentinels, whose finalizers
// check the buffer before it is detached. If the buffer was transferred, its memory stays mapped until the
// process ends.
#pragma once

#include <napi.h>

#include <cstddef>
#include <map>
#include <memory>

#include "fabric/fabric.h"

namespace rdma_rpc::binding {

/// Allocated memory. `host` is released with its device, and `pages` with the last user.
struct OwnedBlock {
  explicit OwnedBlock(std::unique_ptr<fabric::HostMemory> memory);
  ~OwnedBlock();
  OwnedBlock(const OwnedBlock&) = delete;
  OwnedBlock& operator=(const OwnedBlock&) = delete;

  // Members are destroyed in reverse order, so the device forgets the memory before its pages are unmapped.
  std::byte* data;
  std::size_t size;
  std::shared_ptr<const void> pages;
  std::unique_ptr<fabric::HostMemory> host;
};

/// Returns the allocated memory that contains these bytes, or null.
std::shared_ptr<OwnedBlock> find_owned(const void* data, std::size_t bytes);

/// Returns a new block, which find_owned() finds from then on.
std::shared_ptr<OwnedBlock> own(std::unique_ptr<fabric::HostMemory> memory);

/// Returns an ArrayBuffer of the block; an empty value, with an exception pending, when the engine refuses.
Napi::Value buffer_of(Napi::Env env, const std::shared_ptr<OwnedBlock>& block);

}  // namespace rdma_rpc::binding
