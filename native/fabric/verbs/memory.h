// Host memory, registered regions and windows. Each counts itself in the device's counters while it exists.
#pragma once

#include <sys/mman.h>

#include "fabric/fabric.h"
#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

class Memory final : public HostMemory {
 public:
  Memory(std::byte* data, std::size_t bytes, DeviceCounters& counters) : counters_(counters) {
    data_ = data;
    size_ = bytes;
    counters_.memory_bytes += bytes;
  }
  ~Memory() override {
    counters_.memory_bytes -= size_;
    ::munmap(data_, size_);
  }

 private:
  DeviceCounters& counters_;
};

class Region final : public MemoryRegion {
 public:
  Region(MrPtr mr, std::uint32_t access, DeviceCounters& counters)
      : mr_(std::move(mr)), access_(access), counters_(counters) {
    addr_ = reinterpret_cast<std::uint64_t>(mr_->addr);
    length_ = mr_->length;
    lkey_ = mr_->lkey;
    rkey_ = (access & (access_remote_read | access_remote_write)) != 0 ? mr_->rkey : 0;
    ++counters_.memory_regions;
  }
  ~Region() override { --counters_.memory_regions; }
  ibv_mr* get() const { return mr_.get(); }
  std::uint32_t access() const { return access_; }

 private:
  MrPtr mr_;
  std::uint32_t access_;
  DeviceCounters& counters_;
};

class Window final : public MemoryWindow {
 public:
  Window(MwPtr mw, DeviceCounters& counters) : mw_(std::move(mw)), counters_(counters) {
    rkey_ = mw_->rkey;
    ++counters_.memory_windows;
  }
  ~Window() override { --counters_.memory_windows; }
  ibv_mw* get() const { return mw_.get(); }
  /// The key of the next bind. Its low byte is all that a bind can change: the 256th has the first one's key
  /// again.
  std::uint32_t next_key() { return rkey_ = ibv_inc_rkey(rkey_); }

 private:
  MwPtr mw_;
  DeviceCounters& counters_;
};

}  // namespace rdma_rpc::fabric::verbs
