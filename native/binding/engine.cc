// See engine.h.
#include "binding/engine.h"

#include <utility>
#include <vector>

#include "binding/event_loop/root_context.h"
#include "binding/objects/counters.h"
#include "fabric/shm/shm.h"
#include "fabric/sim/sim.h"
#include "fabric/tcp/tcp.h"

namespace rdma_rpc::binding {

namespace ev = session::boundary::ev;

namespace {

/// Amount of external memory that is reported to V8 for a moment when calls wait for memory that only
/// uncollected buffers hold. The amount exceeds V8's hard limit, so that V8 collects now.
constexpr std::int64_t kCollectNowBytes = std::int64_t{1} << 33;
/// Limit of the time for a TCP connection. The limit is shorter than a channel's limit for connecting
/// (connectTimeoutMs), so that the channel's error names the cause.
constexpr std::uint32_t kTcpConnectMs = 4'000;
/// Time for which a peer of another user may delay this thread at the end of a session.
constexpr std::uint32_t kOtherUserGraceUs = 1'000;
/// A stepped simulation advances by this time when nothing else happens. This time equals the time that the
/// pump sleeps before it checks timeouts.
constexpr std::uint64_t kStepIdleNs = 5'000'000;
constexpr int kClockPairs = 5;

std::shared_ptr<fabric::Device> open_device(const EngineOptions& options,
                                            std::shared_ptr<fabric::SimWorld>& stepped, std::string* error) {
  if (options.fabric == "shm") return fabric::open_shm_device({}, error);
  // Each session has a device of its own. The peer of the session may be any user, so this side never waits
  // for a peer that stops in the middle of a copy.
  if (options.fabric == "shm-fd")
    return fabric::open_shm_device({.revoke_grace_us = kOtherUserGraceUs, .by_descriptors = true}, error);
  if (options.fabric == "verbs") return fabric::open_verbs_device(options.verbs, error);
  // The device has no listener: the server listens in JS, and JS hands over the connections.
  if (options.fabric == "tcp")
    return fabric::open_tcp_device({.host = "", .connect_timeout_ms = kTcpConnectMs}, error);
  if (options.fabric == "sim") {
    fabric::SimOptions sim;
    sim.seed = options.seed;
    if (options.stepped) sim.mode = fabric::SimMode::scheduled;
    auto world = std::make_shared<fabric::SimWorld>(sim);
    if (options.stepped) stepped = world;
    return {world->open_device("sim").release(), [world](fabric::Device* device) { delete device; }};
  }
  *error = "unknown fabric '" + options.fabric + "' (known: shm, shm-fd, verbs, tcp, sim)";
  return nullptr;
}

/// Returns the origin of JS's clock on our clock. The thread may be preempted between reading the two clocks,
/// so a few pairs are read and the closest pair counts.
std::uint64_t origin_of(const Napi::Function& clock) {
  std::uint64_t origin_ns = 0, closest_ns = UINT64_MAX;
  for (int pair = 0; pair < kClockPairs; ++pair) {
    const std::uint64_t before_ns = monotonic_ns();
    const double now_ms = clock.Call(clock.Env().Global(), {}).As<Napi::Number>();
    const std::uint64_t took_ns = monotonic_ns() - before_ns;
    if (took_ns >= closest_ns) continue;
    closest_ns = took_ns;
    origin_ns = before_ns - static_cast<std::uint64_t>(now_ms * 1e6);
  }
  return origin_ns;
}

}  // namespace

Engine* Engine::open(Napi::Env env, const EngineOptions& options, std::string* error) {
  std::shared_ptr<fabric::SimWorld> stepped;
  auto device = open_device(options, stepped, error);
  if (device == nullptr) return nullptr;
  session::ContextOptions wanted = options.context;
  // The peer is another user and must reach only memory that is reserved for that user, even if other fabrics
  // are configured differently.
  if (options.fabric == "shm-fd") wanted.exposure = session::Exposure::staging;
  const std::weak_ptr<fabric::Device> opened = device;
  auto context = session::Context::open(std::move(device), wanted, error);
  if (context == nullptr) return nullptr;
  auto* engine = new Engine(env);
  engine->context_ = std::move(context);
  engine->loop_ = options.loop;
  engine->fabric_ = options.fabric;
  engine->staging_bytes_ = options.staging_bytes;
  engine->stepped_ = std::move(stepped);
  engine->pump_ = std::make_unique<Pump>(
      *engine->context_, options.polling,
      [engine](auto count, auto now_ns) { return engine->deliver(count, now_ns); },
      [env, engine] {
        if (!engine->blocks_->collectable()) return false;
        std::int64_t now = 0;
        napi_adjust_external_memory(env, kCollectNowBytes, &now);
        napi_adjust_external_memory(env, -kCollectNowBytes, &now);
        return true;
      });
  if (!engine->pump_->open(options.loop, env, error)) {
    delete engine;
    return nullptr;
  }
  engine->blocks_ = std::make_unique<BlockBuffers>(env, engine->context_->arena(), options.collected);
  engine->context_->arena().on_retire([engine](memory::BlockId block) { engine->blocks_->retire(block); });
  engine->registrations_ =
      std::make_unique<BackgroundRegistrations>(env, opened, [engine](auto key, const auto& registration) {
        if (engine->left_device_) return;
        engine->context_now().mr_cache().finish(key, registration, engine->pump_->now_ns());
        engine->context_->touch();
        engine->pump_->kick();
      });
  engine->context_->mr_cache().set_background(
      [engine](std::uint64_t key, std::shared_ptr<fabric::Registration> registration) {
        return engine->registrations_->start(key, std::move(registration));
      });
  engine->context_->on_session_gone([engine](std::uint32_t session) {
    const auto windows = engine->receive_windows_.find(session);
    if (windows == engine->receive_windows_.end()) return;
    windows->second.detach(engine->env_);
    engine->receive_windows_.erase(windows);
  });
  engine->receiver_ = Napi::Persistent(Napi::Object::New(env));
  if (!options.collect_young.IsEmpty()) engine->collect_young_ = Napi::Persistent(options.collect_young);
  if (engine->stepped_ != nullptr) {
    engine->pump_->set_clock([world = engine->stepped_] { return world->now_ns(); });
  }
  engine->pump_->on_report([engine] { engine->report(); });
  // The collection also frees the memory of buffers that a program has dropped before it became idle, or
  // before its messages became small.
  engine->pump_->on_rest([engine] {
    const Napi::HandleScope scope(engine->env_);
    engine->blocks_->rest();
    if (engine->blocks_->young().rests()) engine->collect_young(monotonic_ns());
  });
  engine->describe();
  engine->blocks_->on_collected([engine] { engine->pump_->kick(); });
  engine->clock_origin_ns_ = origin_of(options.clock);
  engine->clock_[0] = static_cast<double>(monotonic_ns() - engine->clock_origin_ns_) / 1e6;
  napi_add_async_cleanup_hook(
      env, [](napi_async_cleanup_hook_handle, void* data) { static_cast<Engine*>(data)->thread_ends(); },
      engine, &engine->cleanup_);
  return engine;
}

void Engine::describe() {
  std::vector<const char*> names;
  for (const Counter& each : counters_of(*context_, pump_->counters())) names.push_back(each.name);
  const fabric::Capabilities& can = context_->device().capabilities();
  context_->page().describe(names, fabric_, can.name);
  report();
}

void Engine::report() {
  std::uint64_t* at = context_->page().counters();
  for (const Counter& each : counters_of(*context_, pump_->counters())) *at++ = each.value;
  context_->report_sessions();
}

bool Engine::step() {
  if (stepped_ == nullptr) return false;
  const bool stepped = stepped_->step();
  if (!stepped) stepped_->advance(kStepIdleNs);
  pump_->kick();
  return stepped;
}

bool Engine::deliver(std::uint32_t count, std::uint64_t now_ns) {
  const Napi::HandleScope scope(env_);
  clock_[0] = static_cast<double>(now_ns - clock_origin_ns_) / 1e6;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int32_t region = context_->events()[i * ev::words + ev::region];
    if (region > 0) blocks_->lent(static_cast<memory::BlockId>(region), HeldBy::buffer);
  }
  if (callback_.IsEmpty()) return true;
  const napi_env env = env_;
  napi_value argument = nullptr;
  napi_value result = nullptr;  // not used, but Deno writes it even when the pointer to it is null
  napi_create_uint32(env, count, &argument);
  const napi_status status =
      napi_make_callback(env, kRootContext, receiver_.Value(), callback_.Value(), 1, &argument, &result);
  if (status == napi_ok) {
    // By now microtasks have run, so a caller that drops its message at once has already done so.
    if (blocks_ != nullptr && blocks_->young().wanted()) {
      if (const std::uint64_t later_ns = monotonic_ns(); blocks_->young().due(later_ns))
        collect_young(later_ns);
    }
    return true;
  }
  bool pending = false;
  napi_is_exception_pending(env, &pending);
  if (!pending) return false;  // the thread is being terminated
  napi_value error = nullptr;
  if (napi_get_and_clear_last_exception(env, &error) != napi_ok) return false;
  napi_fatal_exception(env, error);
  return true;
}

void Engine::collect_young(std::uint64_t began_ns) {
  if (closed_ || collect_young_.IsEmpty()) return;
  napi_value result = nullptr;
  const napi_status status =
      napi_call_function(env_, receiver_.Value(), collect_young_.Value(), 0, nullptr, &result);
  if (status == napi_pending_exception) napi_get_and_clear_last_exception(env_, &result);
  blocks_->young().done(began_ns, monotonic_ns());
}

Napi::Value Engine::share(void* data, std::size_t bytes, Napi::Reference<Napi::ArrayBuffer>& kept) {
  if (!kept.IsEmpty()) return kept.Value();
  const auto buffer = Napi::ArrayBuffer::New(env_, data, bytes);
  kept = Napi::Reference<Napi::ArrayBuffer>::New(buffer, 1);
  return buffer;
}

void Engine::detach(Napi::Reference<Napi::ArrayBuffer>& buffer) {
  if (buffer.IsEmpty()) return;
  const Napi::HandleScope scope(buffer.Env());
  buffer.Value().Detach();
  buffer.Reset();
}

memory::BlockId Engine::lend(std::size_t bytes, memory::Use use, std::uint32_t number) {
  const session::Session* session = context_->find(number);
  const memory::OwnerId owner = session != nullptr ? session->owner() : memory::kNobody;
  const memory::BlockId block = context_->alloc(bytes, use, owner);
  const HeldBy held_by = use == memory::Use::application ? HeldBy::buffer : HeldBy::number;
  if (block != memory::kNoBlock) blocks_->lent(block, held_by);
  return block;
}

Napi::Value Engine::send_slab() {
  return share(context_->slots().data(), context_->slots().bytes(), send_slab_);
}

Napi::Value Engine::reassembled_messages() {
  return share(context_->reassembled_messages(), session::ReassembledMessages::bytes(),
               shared_arrays_.emplace_back());
}

Napi::Value Engine::short_messages() {
  return share(context_->short_messages(), session::ShortMessages::kBytes, shared_arrays_.emplace_back());
}

Napi::Value Engine::scratch_buffer() {
  return share(scratch_, sizeof scratch_, shared_arrays_.emplace_back());
}

Napi::Value Engine::receive_window(const session::Session& session, std::uint32_t receive_slot) {
  const std::span<std::byte> memory = session.receives().window(receive_slot);
  if (memory.empty()) return env_.Undefined();
  ReceiveWindows& windows =
      session.receives().windows_are_shared() ? shared_windows_ : receive_windows_[session.number()];
  return windows.buffer(env_, session::boundary::receive_window(receive_slot), memory);
}

Napi::Value Engine::int32_array(std::int32_t* words, std::size_t count) {
  const auto buffer =
      share(words, count * sizeof *words, shared_arrays_.emplace_back()).As<Napi::ArrayBuffer>();
  return Napi::Int32Array::New(env_, count, buffer, 0);
}

Napi::Value Engine::clock() {
  const auto buffer = share(clock_, sizeof clock_, shared_arrays_.emplace_back()).As<Napi::ArrayBuffer>();
  return Napi::Float64Array::New(env_, 1, buffer, 0);
}

/// No JS code that could read a buffer runs after this. Deno has no handle scope here, so no handle may be
/// created.
void Engine::thread_ends() {
  if (closed_ || loop_ == LoopKind::libuv) return close(true);
  for (auto& array : shared_arrays_) array.Reset();
  send_slab_.Reset();
  shared_windows_.forget();
  for (auto& [number, windows] : receive_windows_) windows.forget();
  blocks_->forget();
  end();
}

void Engine::close(bool thread_ends) {
  if (closed_) return;
  const Napi::HandleScope scope(env_);
  for (auto& array : shared_arrays_) detach(array);
  detach(send_slab_);
  shared_windows_.detach(env_);
  for (auto& [number, windows] : receive_windows_) windows.detach(env_);
  blocks_->close(thread_ends);
  end();
}

void Engine::leave_device() {
  if (left_device_) return;
  left_device_ = true;
  // The pump is closed first, because it watches a descriptor of the device.
  pump_->close([this] {
    pump_closed_ = true;
    if (closed_) delete this;
  });
  context_->leave_device();
}

void Engine::end() {
  closed_ = true;
  if (owner_ != nullptr) *owner_ = nullptr;
  registrations_.reset();
  context_->arena().on_retire(nullptr);
  context_->on_session_gone(nullptr);
  callback_.Reset();
  collect_young_.Reset();
  receiver_.Reset();
  // The pump is closed first, because it watches a descriptor of the device.
  if (!left_device_) pump_->close([this] { delete this; });
  context_.reset();
  if (pump_closed_) delete this;
}

Engine::~Engine() {
  if (cleanup_ != nullptr) napi_remove_async_cleanup_hook(cleanup_);
}

}  // namespace rdma_rpc::binding
