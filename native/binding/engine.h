// Owns everything native behind one NativeContext object: the device, the context, the pump, and the buffers
// through which JS sees their memory. The engine must outlive that object, because the event loop releases
// the engine only one iteration after close(). The engine deletes itself. This code runs on the JS thread.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "binding/buffers/background_registrations.h"
#include "binding/buffers/block_buffers.h"
#include "binding/buffers/receive_windows.h"
#include "binding/buffers/watched_buffers.h"
#include "binding/event_loop/pump.h"
#include "fabric/sim/sim.h"
#include "fabric/verbs_loader.h"
#include "session/context.h"

namespace rdma_rpc::binding {

struct EngineOptions {
  std::string fabric;
  Polling polling = Polling::adaptive;
  LoopKind loop = LoopKind::libuv;
  Collected collected = Collected::memory;
  Napi::Function clock;  ///< JS's clock (runtime/clock.ts), in ms; valid only while the options are read
  Napi::Function collect_young;  ///< collects V8's young objects (runtime/native/collector.ts); may be empty
  std::uint64_t seed = 1;
  bool stepped = false;  ///< sim: events happen only in step()
  fabric::VerbsOptions verbs;
  session::ContextOptions context;
  std::size_t staging_bytes = 0;  ///< for each session; 0 for the size of its largest message
};

class Engine {
 public:
  /// Returns null, with the reason in `error`, when a part of the engine cannot be opened.
  static Engine* open(Napi::Env env, const EngineOptions& options, std::string* error);
  /// Ends all sessions and detaches all shared buffers. No callback is called afterwards, and the engine
  /// deletes itself.
  void close(bool thread_ends = false);

  /// Closes a device that has been removed, after the last session has ended. Keeps the memory of the
  /// application's leases. Afterwards the only permitted calls are to release blocks, and close().
  void leave_device();

  session::Context& context() { return *context_; }
  /// Returns the context with its clock set to now, for calls from JS outside of a turn.
  session::Context& context_now() {
    context_->set_time(pump_->now_ns());
    return *context_;
  }
  std::size_t staging_bytes() const { return staging_bytes_; }
  BlockBuffers& blocks() { return *blocks_; }
  WatchedBuffers& watched() { return watched_; }
  Pump& pump() { return *pump_; }
  /// `owner` is the pointer to this engine in the JS object. close() sets it to null, because the end of the
  /// thread may close the engine before the object is freed.
  void set_owner(Engine** owner) { owner_ = owner; }
  /// Executes the next event of a stepped simulation, in the order that its seed determines. Returns false
  /// when no event is left; the clock of the simulation then advances by 5 ms.
  bool step();
  void set_callback(Napi::Function callback) { callback_ = Napi::Persistent(callback); }

  /// Returns a block with one reference for JS, or kNoBlock. The block is charged to the session with this
  /// number, if the session exists.
  memory::BlockId lend(std::size_t bytes, memory::Use use, std::uint32_t session);
  Napi::Value send_slab();
  Napi::Value reassembled_messages();
  Napi::Value short_messages();
  /// Returns the window of the session's receives that contains the slot, see boundary::receive_window.
  Napi::Value receive_window(const session::Session& session, std::uint32_t receive_slot);
  Napi::Value int32_array(std::int32_t* words, std::size_t count);
  Napi::Value clock();
  /// Returns the words for the largest number of gather entries of a bulk submission. gather_entries_array()
  /// returns them as an array for JS.
  std::span<std::int32_t> gather_entries() { return gather_entries_; }
  Napi::Value gather_entries_array() { return int32_array(gather_entries_, std::size(gather_entries_)); }
  /// See boundary::kScratchBytes.
  std::span<std::byte> scratch() { return scratch_; }
  Napi::Value scratch_buffer();

 private:
  explicit Engine(Napi::Env env) : env_(env), watched_(env) {}
  ~Engine();
  bool deliver(std::uint32_t count, std::uint64_t now_ns);
  void collect_young(std::uint64_t now_ns);
  void describe();
  void report();
  void thread_ends();
  void end();
  Napi::Value share(void* data, std::size_t bytes, Napi::Reference<Napi::ArrayBuffer>& kept);
  static void detach(Napi::Reference<Napi::ArrayBuffer>& buffer);

  Napi::Env env_;
  WatchedBuffers watched_;
  LoopKind loop_ = LoopKind::libuv;
  std::string fabric_;
  std::size_t staging_bytes_ = 0;
  std::unique_ptr<session::Context> context_;
  std::unique_ptr<BackgroundRegistrations> registrations_;
  std::unique_ptr<BlockBuffers> blocks_;
  std::unique_ptr<Pump> pump_;
  std::shared_ptr<fabric::SimWorld> stepped_;  ///< null outside of a stepped simulation
  Napi::FunctionReference callback_, collect_young_;
  Napi::ObjectReference receiver_;  ///< `this` of the callback
  napi_async_cleanup_hook_handle cleanup_ = nullptr;
  bool closed_ = false;
  bool left_device_ = false, pump_closed_ = false;
  Engine** owner_ = nullptr;

  std::int32_t gather_entries_[session::kGatherEntriesMax * session::boundary::gather_entry::words] = {};
  alignas(64) std::byte scratch_[session::boundary::kScratchBytes] = {};
  double clock_[1] = {};
  std::uint64_t clock_origin_ns_ = 0;
  std::vector<Napi::Reference<Napi::ArrayBuffer>> shared_arrays_;
  Napi::Reference<Napi::ArrayBuffer> send_slab_;
  std::unordered_map<std::uint32_t, ReceiveWindows> receive_windows_;  ///< by session number
  ReceiveWindows shared_windows_;  ///< for all sessions with shared receives
};

}  // namespace rdma_rpc::binding
