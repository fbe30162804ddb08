// See native_context.h and runtime/native/native.ts.
#include "binding/native_context.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding/engine.h"
#include "binding/objects/boundary_constants.h"
#include "binding/objects/engine_options.h"
#include "binding/objects/given_gather_entries.h"
#include "binding/objects/own_properties.h"
#include "binding/objects/peer_address.h"
#include "binding/objects/session_object.h"
#include "binding/objects/session_options.h"
#include "binding/objects/stats_object.h"
#include "binding/objects/trace_object.h"
#include "binding/objects/verbs_report.h"
#include "binding/requirements.h"

namespace rdma_rpc::binding {
namespace {

namespace boundary = session::boundary;

class NativeContext : public Napi::ObjectWrap<NativeContext> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "NativeContext",
                       {
                           InstanceMethod<&NativeContext::create_session>("createSession"),
                           InstanceMethod<&NativeContext::session_address>("sessionAddress"),
                           InstanceMethod<&NativeContext::connect_session>("connectSession"),
                           InstanceMethod<&NativeContext::receive_window>("receiveWindow"),
                           InstanceMethod<&NativeContext::close_session>("closeSession"),
                           InstanceMethod<&NativeContext::session_error>("sessionError"),
                           InstanceMethod<&NativeContext::session_info>("sessionInfo"),
                           InstanceMethod<&NativeContext::session_trace>("sessionTrace"),
                           InstanceMethod<&NativeContext::segmented_bytes>("segmentedBytes"),
                           InstanceMethod<&NativeContext::take_long_slot>("takeLongSlot"),
                           InstanceMethod<&NativeContext::release_long_slot>("releaseLongSlot"),
                           InstanceMethod<&NativeContext::cancel>("cancel"),
                           InstanceMethod<&NativeContext::want>("want"),
                           InstanceMethod<&NativeContext::defer_handler>("deferHandler"),
                           InstanceMethod<&NativeContext::alloc_block>("allocBlock"),
                           InstanceMethod<&NativeContext::refusal>("refusal"),
                           InstanceMethod<&NativeContext::give_block<&BlockBuffers::discard>>("discardBlock"),
                           InstanceMethod<&NativeContext::block_of>("blockOf"),
                           InstanceMethod<&NativeContext::register_buffer>("registerBuffer"),
                           InstanceMethod<&NativeContext::holds_buffer>("holdsBuffer"),
                           InstanceMethod<&NativeContext::expect_response>("expectResponse"),
                           InstanceMethod<&NativeContext::stats>("stats"),
                           InstanceMethod<&NativeContext::name_session>("nameSession"),
                           InstanceMethod<&NativeContext::name_method>("nameMethod"),
                           InstanceMethod<&NativeContext::leave_device>("leaveDevice"),
                           InstanceMethod<&NativeContext::on_events>("onEvents"),
                           InstanceMethod<&NativeContext::step_sim>("stepSim"),
                           InstanceMethod<&NativeContext::close>("close"),
                       });
  }

  explicit NativeContext(const Napi::CallbackInfo& info) : Napi::ObjectWrap<NativeContext>(info) {
    const Napi::Env env = info.Env();
    std::string error;
    engine_ = Engine::open(env, read_options(info[0].As<Napi::Object>()), &error);
    if (engine_ == nullptr) {
      Napi::Error::New(env, "rdma-rpc: " + error).ThrowAsJavaScriptException();
      return;
    }
    engine_->set_owner(&engine_);
    const auto self = info.This().As<Napi::Object>();
    session::Context& context = engine_->context();
    give(self, "control", engine_->int32_array(context.control(), context.control_words()));
    give(self, "submissions", engine_->int32_array(context.submissions(), context.submission_words()));
    give(self, "events", engine_->int32_array(context.events(), context.event_words()));
    give(self, "freeSlots", engine_->int32_array(context.free_slots(), context.slots().count()));
    give(self, "sessionSlots", engine_->int32_array(context.session_slots(), context.session_slots_words()));
    give(self, "arenaBytes", static_cast<double>(context.arena().largest()));
    give(self, "clock", engine_->clock());
    give(self, "gatherEntries", engine_->gather_entries_array());
    give(self, "scratch", engine_->scratch_buffer());
    give(self, "sendSlab", engine_->send_slab());
    give(self, "slotStride", context.slots().stride());
    give(self, "slotPayloadOffset", session::kSlotHeadroom);
    give(self, "longSlotStride", session::SendSlots::kLongStride);
    give(self, "reassembledMessages", engine_->reassembled_messages());
    give(self, "shortMessages", engine_->short_messages());
    give(self, "capabilities", capabilities_object(env, context.device().capabilities()));
    give(self, "peersKeepAccess", context.peers_keep_access());
    give(self, "submissionsMax", session::kSubmissionsMax);
    give(self, "path", context.device().capabilities().path);
    give_method<&NativeContext::flush>(self, "flush", this);
    give_method<&NativeContext::submit_bulk>(self, "submitBulk", this);
    give_method<&NativeContext::alloc_buffer>(self, "allocBuffer", this);
    give_method<&NativeContext::block_buffer>(self, "blockBuffer", this);
    give_method<&NativeContext::give_block<&BlockBuffers::release>>(self, "releaseBlock", this);
    give_method<&NativeContext::give_block<&BlockBuffers::take>>(self, "takeBlock", this);
  }

  ~NativeContext() override {
    if (engine_ != nullptr) engine_->close();
  }

 private:
  /// Returns the engine, or null with an exception pending.
  Engine* engine(const Napi::CallbackInfo& info) {
    if (engine_ == nullptr)
      Napi::Error::New(info.Env(), "rdma-rpc: context is closed").ThrowAsJavaScriptException();
    return engine_;
  }
  /// Returns the session, or null when the session or the context is closed.
  session::Session* find(const Napi::CallbackInfo& info) {
    return engine_ == nullptr ? nullptr : engine_->context().find(info[0].As<Napi::Number>().Uint32Value());
  }
  /// Returns the session, or null with an exception pending.
  session::Session* session(const Napi::CallbackInfo& info) {
    if (engine(info) == nullptr) return nullptr;
    session::Session* found = find(info);
    if (found == nullptr)
      Napi::Error::New(info.Env(), "rdma-rpc: no such session").ThrowAsJavaScriptException();
    return found;
  }

  /// Returns the engine while it has its device, or null with an exception pending.
  Engine* working(const Napi::CallbackInfo& info) {
    Engine* engine = this->engine(info);
    if (engine == nullptr || engine->context().has_device()) return engine;
    Napi::Error::New(info.Env(), "rdma-rpc: the device was removed").ThrowAsJavaScriptException();
    return nullptr;
  }

  void flush(const Napi::CallbackInfo&) {
    if (engine_ == nullptr) return;
    // The time of these calls is measured from now, because the last turn may have been long ago.
    engine_->context_now().flush();
    engine_->pump().kick();
  }

  Napi::Value create_session(const Napi::CallbackInfo& info) {
    Engine* engine = working(info);
    if (engine == nullptr) return {};
    std::string error;
    session::SessionOptions options = read_session_options(info[0].As<Napi::Object>(), &error);
    options.staging_bytes = engine->staging_bytes();
    const std::int64_t number = error.empty() ? engine->context().create_session(options, &error) : -1;
    if (number < 0) {
      Napi::Error::New(info.Env(), "rdma-rpc: " + error).ThrowAsJavaScriptException();
      return {};
    }
    return Napi::Number::New(info.Env(), static_cast<double>(number));
  }

  Napi::Value session_address(const Napi::CallbackInfo& info) {
    session::Session* session = this->session(info);
    return session == nullptr ? Napi::Value() : own_address(info.Env(), session->local_address());
  }

  Napi::Value connect_session(const Napi::CallbackInfo& info) {
    session::Session* session = this->session(info);
    if (session == nullptr) return {};
    std::string why;
    const std::vector<std::byte> address = read_peer_address(info, &why);
    const std::optional<fabric::FirstWords> words = read_first_words(info, &why);
    engine_->context_now();
    if (why.empty()) why = session->connect(address, words ? &*words : nullptr);
    engine_->pump().kick();
    return Napi::String::New(info.Env(), why);
  }

  Napi::Value receive_window(const Napi::CallbackInfo& info) {
    session::Session* found = session(info);
    return found == nullptr ? Napi::Value() : engine_->receive_window(*found, info[1].As<Napi::Number>());
  }

  void close_session(const Napi::CallbackInfo& info) {
    session::Session* found = find(info);
    if (found == nullptr) return;
    engine_->context_now();
    found->close(info[1].As<Napi::String>().Utf8Value());
    engine_->pump().kick();
  }

  Napi::Value session_error(const Napi::CallbackInfo& info) {
    session::Session* session = this->session(info);
    return session == nullptr ? Napi::Value() : Napi::String::New(info.Env(), session->error());
  }

  Napi::Value session_trace(const Napi::CallbackInfo& info) {
    session::Session* session = this->session(info);
    return session == nullptr ? Napi::Value() : trace_object(info.Env(), engine_->context(), *session);
  }

  Napi::Value session_info(const Napi::CallbackInfo& info) {
    session::Session* session = this->session(info);
    return session == nullptr ? Napi::Value() : session_object(info.Env(), engine_->context(), *session);
  }

  Napi::Value segmented_bytes(const Napi::CallbackInfo& info) {
    session::Session* session = this->session(info);
    return session == nullptr ? Napi::Value() : Napi::Number::New(info.Env(), session->segmented_bytes());
  }

  Napi::Value take_long_slot(const Napi::CallbackInfo& info) {
    session::Session* found = find(info);
    std::optional<std::uint32_t> call;
    if (info.Length() > 1) call = info[1].As<Napi::Number>().Uint32Value();
    return Napi::Number::New(info.Env(), found == nullptr ? -1 : found->take_long_slot(call));
  }

  void release_long_slot(const Napi::CallbackInfo& info) {
    if (engine_ != nullptr)
      engine_->context().slots().give_long_back(info[0].As<Napi::Number>().Int32Value());
  }
  Napi::Value submit_bulk(const Napi::CallbackInfo& info);

  Napi::Value cancel(const Napi::CallbackInfo& info) {
    session::Session* found = find(info);
    if (found == nullptr) return Napi::Number::New(info.Env(), 0);
    // The time that the peer has for its answer is measured from now, because the loop may have slept for
    // long. Staged submissions are sent first, because the call may be one of them.
    engine_->context_now().flush();
    const std::uint32_t call = info[1].As<Napi::Number>().Uint32Value();
    const std::uint32_t awaited_bytes = found->awaited_bytes(call);
    found->cancel(call, static_cast<boundary::Reason>(info[2].As<Napi::Number>().Int32Value()));
    engine_->context().flush();
    engine_->pump().kick();
    return Napi::Number::New(info.Env(), awaited_bytes);
  }

  void want(const Napi::CallbackInfo& info) {
    session::Session* found = find(info);
    if (found == nullptr) return;
    found->want(info[1].As<Napi::Number>().Uint32Value());
    engine_->pump().kick();
  }

  Napi::Value defer_handler(const Napi::CallbackInfo& info) {
    session::Session* found = find(info);
    const std::uint32_t call = info[1].As<Napi::Number>().Uint32Value();
    const bool waits = found != nullptr && found->defer_handler(call, info[2].As<Napi::Boolean>());
    return Napi::Boolean::New(info.Env(), waits);
  }

  static memory::BlockId lend_block(Engine& engine, const Napi::CallbackInfo& info) {
    const auto bytes = static_cast<std::size_t>(info[0].As<Napi::Number>().Int64Value());
    const auto use = static_cast<memory::Use>(info[1].As<Napi::Number>().Uint32Value());
    return engine.lend(bytes, use, info.Length() > 2 ? info[2].As<Napi::Number>().Uint32Value() : UINT32_MAX);
  }
  Napi::Value alloc_block(const Napi::CallbackInfo& info) {
    Engine* engine = this->engine(info);
    return engine == nullptr ? Napi::Value() : Napi::Number::New(info.Env(), lend_block(*engine, info));
  }

  Napi::Value alloc_buffer(const Napi::CallbackInfo& info) {
    Engine* engine = this->engine(info);
    if (engine == nullptr) return {};
    const memory::BlockId block = lend_block(*engine, info);
    return block == memory::kNoBlock ? info.Env().Undefined() : engine->blocks().buffer(block);
  }

  Napi::Value refusal(const Napi::CallbackInfo& info) {
    Engine* engine = this->engine(info);
    return engine == nullptr ? Napi::Value() : Napi::String::New(info.Env(), engine->context().refusal());
  }

  Napi::Value block_buffer(const Napi::CallbackInfo& info) {
    Engine* engine = this->engine(info);
    if (engine == nullptr) return {};
    const Napi::Value buffer = engine->blocks().buffer(info[0].As<Napi::Number>().Uint32Value());
    if (buffer.IsEmpty())
      Napi::Error::New(info.Env(), "rdma-rpc: no such block").ThrowAsJavaScriptException();
    return buffer;
  }

  template <void (BlockBuffers::*give)(memory::BlockId)>
  void give_block(const Napi::CallbackInfo& info) {
    if (engine_ == nullptr) return;
    (engine_->blocks().*give)(info[0].As<Napi::Number>().Uint32Value());
    if (engine_->context().awaits_memory()) engine_->pump().kick();
  }

  Napi::Value block_of(const Napi::CallbackInfo& info) {
    if (engine_ == nullptr || !info[0].IsArrayBuffer()) return Napi::Number::New(info.Env(), 0);
    auto buffer = info[0].As<Napi::ArrayBuffer>();
    return Napi::Number::New(info.Env(), engine_->context().arena().find(buffer.Data(), 1));
  }

  Napi::Value register_buffer(const Napi::CallbackInfo& info) {
    Engine* engine = working(info);
    if (engine == nullptr) return {};
    const auto key = static_cast<std::uint64_t>(info[0].As<Napi::Number>().Int64Value());
    auto buffer = info[1].As<Napi::ArrayBuffer>();
    std::string why;
    memory::MrCache& cache = engine->context().mr_cache();
    const std::uint64_t now_ns = engine->pump().now_ns();
    const auto watch = engine->watched().watch(key, buffer);
    if (cache.acquire(key, buffer.Data(), buffer.ByteLength(), now_ns, &why, watch) != nullptr) {
      cache.unpin(key, now_ns);
      engine->pump().kick();  // starts the timer that releases idle registrations
    }
    return Napi::String::New(info.Env(), why);
  }
  void expect_response(const Napi::CallbackInfo& info) {
    if (engine_ == nullptr) return;
    engine_->context().expect_response(info[0].As<Napi::Number>().Uint32Value(),
                                       info[1].As<Napi::Number>().Uint32Value());
  }
  Napi::Value holds_buffer(const Napi::CallbackInfo& info) {
    const auto key = static_cast<std::uint64_t>(info[0].As<Napi::Number>().Int64Value());
    return Napi::Boolean::New(info.Env(), engine_ != nullptr && engine_->context().mr_cache().holds(key));
  }

  void name_session(const Napi::CallbackInfo& info) {
    if (engine_ == nullptr) return;
    engine_->context().name_session(info[0].As<Napi::Number>().Uint32Value(),
                                    info[1].As<Napi::String>().Utf8Value(),
                                    info[2].As<Napi::Number>().Uint32Value());
  }
  void name_method(const Napi::CallbackInfo& info) {
    if (engine_ == nullptr) return;
    engine_->context().page().latencies().name(info[0].As<Napi::Number>().Uint32Value(),
                                               info[1].As<Napi::String>().Utf8Value());
  }

  Napi::Value stats(const Napi::CallbackInfo& info) {
    Engine* engine = this->engine(info);
    if (engine == nullptr) return {};
    return stats_object(info.Env(), engine->context(), engine->pump().counters());
  }
  void leave_device(const Napi::CallbackInfo&) {
    if (engine_ != nullptr) engine_->leave_device();
  }

  void on_events(const Napi::CallbackInfo& info) {
    if (Engine* engine = this->engine(info)) engine->set_callback(info[0].As<Napi::Function>());
  }
  Napi::Value step_sim(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), engine_ != nullptr && engine_->step());
  }
  void close(const Napi::CallbackInfo&) {
    if (Engine* engine = std::exchange(engine_, nullptr)) engine->close();
  }

  Engine* engine_ = nullptr;
};

Napi::Value NativeContext::submit_bulk(const Napi::CallbackInfo& info) {
  Engine* engine = this->engine(info);
  if (engine == nullptr) return {};
  const auto number = [&](std::size_t index) { return info[index].As<Napi::Number>().Uint32Value(); };
  session::Session* session = engine->context().find(number(1));
  const auto lost = Napi::Number::New(info.Env(), -static_cast<int>(boundary::Reason::session_lost));
  if (session == nullptr) return lost;
  auto submission = read_submission(info);
  const auto read = info[7].IsNumber() ? read_gather_entries(*engine, number(7), submission.gather_entries)
                                       : read_gather_entries(info.Env(), info[7], info[8], *engine,
                                                             submission.gather_entries);
  if (read == GatherEntriesRead::thread_ends) return lost;
  if (read == GatherEntriesRead::no_bytes) {
    Napi::TypeError::New(info.Env(), "rdma-rpc: a gather entry is not a Uint8Array or not in a block")
        .ThrowAsJavaScriptException();
    return {};
  }
  // The frame needs a send slot even when JS has no metadata for it.
  const std::int32_t given = info[4].As<Napi::Number>().Int32Value();
  const std::int32_t slot = given >= 0 ? given : engine->context().slots().take();
  if (!engine->context().slots().valid(slot)) {
    engine->context().forget_refusal();
    return Napi::Number::New(info.Env(), -static_cast<int>(boundary::Reason::no_memory));
  }
  submission.slot = static_cast<std::uint32_t>(slot);
  const std::int32_t token = session->submit_bulk(std::move(submission));
  engine->pump().kick();
  if (token < 0 && given < 0) engine->context().slots().release(submission.slot);
  // The session keeps its own reference as long as it needs the block.
  if (token >= 0 && info[8].IsNumber() && number(8) != memory::kNoBlock) engine->blocks().release(number(8));
  return Napi::Number::New(info.Env(), token);
}

}  // namespace

void define_module(Napi::Env env, Napi::Object exports) {
  // This function's closure keeps the class alive, because each thread defines a class of its own.
  auto constructor = std::make_shared<Napi::FunctionReference>(Napi::Persistent(NativeContext::define(env)));
  exports.Set("createContext",
              Napi::Function::New(env, [constructor](const Napi::CallbackInfo& info) -> Napi::Value {
                return constructor->New({info[0]});
              }));
  exports.Set("ciphers", cipher_names(env));
  exports.Set("whyUnusable", Napi::String::New(env, why_unusable(env)));
  exports.Set("verbsDevices", Napi::Function::New(env, [](const Napi::CallbackInfo& info) -> Napi::Value {
                return verbs_report(info);
              }));
  exports.Set("boundary", Napi::Function::New(env, [](const Napi::CallbackInfo& info) -> Napi::Value {
                return boundary_constants(info.Env());
              }));
}

}  // namespace rdma_rpc::binding
