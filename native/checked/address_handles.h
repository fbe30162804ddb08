// Keeps the address handles of a device by number. An address handle names the destination of datagrams, and
// a posted datagram keeps its handle alive. Device makes this table, and UD queue pairs use it, on the JS
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "checked/counted.h"
#include "fabric/fabric.h"

namespace rdma_rpc::checked {

class AddressHandle final : public Counted {
 public:
  AddressHandle(std::shared_ptr<fabric::Device> device, std::unique_ptr<fabric::AddressHandle> handle)
      : device_(std::move(device)), handle_(std::move(handle)) {}
  const fabric::AddressHandle& on_device() const { return *handle_; }

 private:
  std::shared_ptr<fabric::Device> device_;
  std::unique_ptr<fabric::AddressHandle> handle_;
};

class AddressHandles {
 public:
  std::uint32_t add(Ref<AddressHandle> handle) {
    handles_.emplace(++last_, std::move(handle));
    return last_;
  }
  void remove(std::uint32_t number) { removals_ += handles_.erase(number); }
  /// Returns how many handles were removed so far.
  std::uint64_t removals() const { return removals_; }
  /// Returns null for a handle that was closed, or that never existed.
  const AddressHandle* find(std::uint32_t number) const {
    const auto found = handles_.find(number);
    return found == handles_.end() ? nullptr : found->second.get();
  }

 private:
  std::uint32_t last_ = 0;
  std::uint64_t removals_ = 0;
  std::unordered_map<std::uint32_t, Ref<AddressHandle>> handles_;
};

}  // namespace rdma_rpc::checked
