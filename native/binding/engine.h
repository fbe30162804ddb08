// Everything native behind one NativeContext object: device, context, pump and the buffers that JS has of
// their memory. Its own class because it must outlive that object: the event loop lets go of it only an
// iteration after close(). On the JS thread. Deletes itself.
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
  Napi::Function clock;  ///< JS's (runtime/clock.ts), in ms; valid while the options are read
  Napi::Function
      collect_young;  ///< collects V8's young objects (runtime/native/collector.ts); empty: nothing does
  std::uint64_t seed = 1;
  bool stepped = false;  ///< sim: nothing happens but in step()
  fabric::VerbsOptions verbs;
  session::ContextOptions context;
  std::size_t staging_bytes = 0;  ///< of each session; 0: by its largest message
};

class Engine {
 public:
  /// Null, with the reason in `error`.
  static Engine* open(Napi::Env env, const EngineOptions& options, std::string* error);
  /// Ends everything: no callback any more, all shared buffers detached. The engine is gone afterwards.
  void close(bool thread_ends = false);

  /// The device has been removed, and no session is left: closes it, and keeps what leases of the application
  /// show. Afterwards only blocks can be given back, and close() is to come.
  void leave_device();

  session::Context& context() { return *context_; }
  /// The same, at the time that it is: for what JS asks for outside of a turn.
  session::Context& context_now() {
    context_->set_time(pump_->now_ns());
    return *context_;
  }
  std::size_t staging_bytes() const { return staging_bytes_; }
  BlockBuffers& blocks() { return *blocks_; }
  WatchedBuffers& watched() { return watched_; }
  Pump& pump() { return *pump_; }
  /// The pointer that its JS object has to this engine: null from close() on, which the end of the thread may
  /// call first.
  void set_owner(Engine** owner) { owner_ = owner; }
  /// A stepped simulation: carries out its next event, in the order of the seed. False: there is none, and
  /// its clock has moved on by 5 ms.
  bool step();
  void set_callback(Napi::Function callback) { callback_ = Napi::Persistent(callback); }

  /// A block for JS, with one reference that is JS's, or kNoBlock. A number that no session has: it counts
  /// for nobody.
  memory::BlockId lend(std::size_t bytes, memory::Use use, std::uint32_t session);
  Napi::Value send_slab();
  Napi::Value reassembled_messages();
  Napi::Value short_messages();
  /// The window of that session's receives that the slot is in, see boundary::receive_window.
  Napi::Value receive_window(const session::Session& session, std::uint32_t receive_slot);
  Napi::Value int32_array(std::int32_t* words, std::size_t count);
  Napi::Value clock();
  /// Words of the gather entries of a bulk submission, as many as it may have, and the same for JS.
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
  std::shared_ptr<fabric::SimWorld> stepped_;  ///< null: no stepped simulation
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
  std::unordered_map<std::uint32_t, ReceiveWindows> receive_windows_;  ///< of sessions that have some
  ReceiveWindows shared_windows_;  ///< of all sessions that share their receives
};

}  // namespace rdma_rpc::binding
