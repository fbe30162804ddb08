// Keeps the ArrayBuffers through which JS reads the receives of one session. Each window
// (boundary::receive_window) has one, which is created when JS first reads in the window. V8 counts these
// buffers like any other external memory. A single buffer would therefore count all receives of a session,
// even if the session uses only a few of them. Engine owns this object and uses it on the JS thread.
#pragma once

#include <napi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rdma_rpc::binding {

class ReceiveWindows {
 public:
  Napi::Value buffer(Napi::Env env, std::uint32_t window, std::span<std::byte> memory) {
    if (window >= windows_.size()) windows_.resize(window + 1);
    Napi::Reference<Napi::ArrayBuffer>& kept = windows_[window];
    if (!kept.IsEmpty()) return kept.Value();
    const auto made = Napi::ArrayBuffer::New(env, memory.data(), memory.size());
    kept = Napi::Reference<Napi::ArrayBuffer>::New(made, 1);
    return made;
  }

  /// Detaches all windows. Must be called before the memory is freed, so that no view shows its next
  /// contents.
  void detach(Napi::Env env) {
    const Napi::HandleScope scope(env);
    for (Napi::Reference<Napi::ArrayBuffer>& each : windows_) {
      if (!each.IsEmpty()) each.Value().Detach();
    }
    forget();
  }

  /// Drops all windows without detaching them. Allowed at the end of the thread, when no JS code can read the
  /// buffers any more.
  void forget() {
    for (Napi::Reference<Napi::ArrayBuffer>& each : windows_) each.Reset();
    windows_.clear();
  }

 private:
  std::vector<Napi::Reference<Napi::ArrayBuffer>> windows_;
};

}  // namespace rdma_rpc::binding
