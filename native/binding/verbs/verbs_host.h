// Owns everything native behind one device of `rdma-rpc/verbs`: the device, its objects by number, and the
// operations that wait in the event loop. The host must outlive the JS object, because the event loop
// releases a completion queue only one iteration after it was closed. The host deletes itself. This code runs
// on the JS thread.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "binding/event_loop/event_loop.h"
#include "binding/verbs/open_fabric.h"
#include "binding/verbs/ready_watch.h"
#include "checked/device.h"

namespace rdma_rpc::binding {

/// Objects of one kind by their numbers, which are never reused.
template <class Object, class Pointer = std::shared_ptr<Object>>
class Numbered {
 public:
  std::uint32_t add(Pointer object) {
    objects_.emplace(++last_, std::move(object));
    return last_;
  }
  /// Returns null for an object that was closed, or that never existed.
  const Pointer& find(std::uint32_t number) const {
    static const Pointer none;
    // The queues of the hot path are looked up again and again, so the last one is checked first.
    if (number == last_number_ && last_found_ != nullptr) return *last_found_;
    const auto found = objects_.find(number);
    if (found == objects_.end()) return none;
    last_number_ = number;
    last_found_ = &found->second;
    return found->second;
  }
  void remove(std::uint32_t number) {
    last_found_ = nullptr;
    objects_.erase(number);
  }
  void clear() {
    last_found_ = nullptr;
    objects_.clear();
  }
  bool empty() const { return objects_.empty(); }

 private:
  std::uint32_t last_ = 0;
  std::unordered_map<std::uint32_t, Pointer> objects_;
  mutable std::uint32_t last_number_ = 0;
  mutable const Pointer* last_found_ = nullptr;  ///< in objects_, whose elements stay where they are
};

class VerbsHost {
 public:
  /// Returns null, with the reason in `error`, when the device cannot be opened.
  static VerbsHost* open(Napi::Env env, LoopKind loop, const OpenOptions& options, std::string* error);
  /// Closes everything. The host deletes itself afterwards.
  void close();

  checked::Device& device() { return *device_; }
  OpenFabric& fabric() { return *fabric_; }
  Numbered<checked::Region, checked::Ref<checked::Region>> regions;
  Numbered<checked::CompletionQueue> cqs;
  Numbered<checked::SharedReceives> srqs;
  Numbered<checked::QueuePair> qps;

  void close_region(std::uint32_t number);
  void close_cq(std::uint32_t number);
  /// See ReadyWatch::arm(). When the event loop refuses, `error` contains the reason.
  bool arm(std::uint32_t cq, const Napi::Function& callback, bool solicited, std::string* error);

  /// `owner` is where the JS object stores its pointer to this host. close() sets it to null, because the end
  /// of the thread may close the host before the JS object is freed.
  void set_owner(VerbsHost** owner) { owner_ = owner; }

 private:
  VerbsHost(Napi::Env env, LoopKind loop) : env_(env), loop_(loop) {}
  ~VerbsHost();
  void close_watch(std::unique_ptr<ReadyWatch> watch);

  Napi::Env env_;
  LoopKind loop_;
  std::shared_ptr<OpenFabric> fabric_;
  std::unique_ptr<checked::Device> device_;
  std::unordered_map<std::uint32_t, std::unique_ptr<ReadyWatch>> watches_;  ///< by the number of the queue
  int closing_watches_ = 0;
  bool closed_ = false;
  VerbsHost** owner_ = nullptr;
  napi_async_cleanup_hook_handle cleanup_ = nullptr;
};

}  // namespace rdma_rpc::binding
