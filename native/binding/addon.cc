// This file is the entry point of the addon. The file runs once per JS thread. The only state of the addon is
// the thread's budget for garbage collections.
#include <napi.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "binding/context/native_context.h"
#include "binding/event_loop/clock.h"
#include "binding/event_loop/collections.h"
#include "binding/event_loop/root_context.h"
#include "binding/file_lock.h"
#include "binding/freed_memory.h"
#include "binding/objects/verbs_inspection.h"
#include "binding/peer_credentials.h"
#include "binding/socket_error.h"
#include "binding/unix_socket.h"
#include "binding/verbs/verbs_device.h"
#include "fabric/acceptor.h"

namespace {

using rdma_rpc::binding::CollectionBudget;
using rdma_rpc::binding::monotonic_ns;

constexpr double kNsPerMs = 1e6;
/// Upper limit for the duration of a garbage collection that JS reports.
constexpr double kCollectionMaxMs = 60'000;

/// Returns the address of an ArrayBuffer, which JS has no other way to find. The runtime needs the address to
/// align buffers to 64 bytes, and tests of zero copy compare it.
Napi::Value address(const Napi::CallbackInfo& info) {
  if (!info[0].IsArrayBuffer()) return Napi::Number::New(info.Env(), 0);
  const auto at = reinterpret_cast<std::uintptr_t>(info[0].As<Napi::ArrayBuffer>().Data());
  return Napi::Number::New(info.Env(), static_cast<double>(at));
}

void keep_freed_memory(const Napi::CallbackInfo&) { rdma_rpc::binding::keep_freed_memory(); }

/// Returns the number of milliseconds until the next collection is allowed.
Napi::Value collection_wait(const Napi::CallbackInfo& info) {
  const std::uint64_t next = CollectionBudget::of_thread().next_ns(), now = monotonic_ns();
  return Napi::Number::New(info.Env(), next <= now ? 0.0 : static_cast<double>(next - now) / kNsPerMs);
}

void collection_done(const Napi::CallbackInfo& info) {
  const double cost_ns = std::clamp(info[0].ToNumber().DoubleValue(), 0.0, kCollectionMaxMs) * kNsPerMs;
  const std::uint64_t now = monotonic_ns();
  CollectionBudget::of_thread().spend(now - std::min(now, static_cast<std::uint64_t>(cost_ns)), now);
}

/// Hands over a connection that JS has accepted, with the bytes that were already read from it, to a queue
/// pair of any thread.
Napi::Value hand_off(const Napi::CallbackInfo& info) {
  const auto bytes = info[1].As<Napi::Uint8Array>();
  const std::string why =
      rdma_rpc::fabric::hand_off(info[0].As<Napi::Number>().Int32Value(),
                                 {reinterpret_cast<const std::byte*>(bytes.Data()), bytes.ByteLength()});
  return Napi::String::New(info.Env(), why);
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  rdma_rpc::binding::define_module(env, exports);
  rdma_rpc::binding::define_verbs_devices(env, exports);
  exports.Set("address", Napi::Function::New(env, address));
  exports.Set("keepFreedMemory", Napi::Function::New(env, keep_freed_memory));
  exports.Set("collectionWaitMs", Napi::Function::New(env, collection_wait));
  exports.Set("collectionDone", Napi::Function::New(env, collection_done));
  exports.Set("runInRoot", Napi::Function::New(env, rdma_rpc::binding::run_in_root));
  exports.Set("handOff", Napi::Function::New(env, hand_off));
  exports.Set("lockFile", Napi::Function::New(env, rdma_rpc::binding::lock_file));
  rdma_rpc::binding::define_unix_sockets(env, exports);
  rdma_rpc::binding::define_verbs_inspection(env, exports);
  exports.Set("unlockFile", Napi::Function::New(env, rdma_rpc::binding::unlock_file));
  exports.Set("peerCredentials", Napi::Function::New(env, rdma_rpc::binding::peer_credentials));
  exports.Set("takeSocketError", Napi::Function::New(env, rdma_rpc::binding::take_socket_error));
  return exports;
}

}  // namespace

NODE_API_MODULE(rdma_rpc, init)
