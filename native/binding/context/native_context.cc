// See native_context.h and runtime/native/native.ts.
#include "binding/context/native_context.h"

#include <memory>
#include <string>
#include <utility>

#include "binding/objects/boundary_constants.h"
#include "binding/objects/engine_options.h"
#include "binding/objects/own_properties.h"
#include "binding/objects/session_options.h"
#include "binding/objects/stats_object.h"
#include "binding/objects/verbs_report.h"
#include "binding/requirements.h"

namespace rdma_rpc::binding {

Napi::Function NativeContext::define(Napi::Env env) {
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
                         InstanceMethod<&NativeContext::session_path>("sessionPath"),
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

NativeContext::NativeContext(const Napi::CallbackInfo& info) : Napi::ObjectWrap<NativeContext>(info) {
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

Engine* NativeContext::engine(const Napi::CallbackInfo& info) {
  if (engine_ == nullptr)
    Napi::Error::New(info.Env(), "rdma-rpc: context is closed").ThrowAsJavaScriptException();
  return engine_;
}

session::Session* NativeContext::find(const Napi::CallbackInfo& info) {
  return engine_ == nullptr ? nullptr : engine_->context().find(info[0].As<Napi::Number>().Uint32Value());
}

session::Session* NativeContext::session(const Napi::CallbackInfo& info) {
  if (engine(info) == nullptr) return nullptr;
  session::Session* found = find(info);
  if (found == nullptr)
    Napi::Error::New(info.Env(), "rdma-rpc: no such session").ThrowAsJavaScriptException();
  return found;
}

Engine* NativeContext::working(const Napi::CallbackInfo& info) {
  Engine* engine = this->engine(info);
  if (engine == nullptr || engine->context().has_device()) return engine;
  Napi::Error::New(info.Env(), "rdma-rpc: the device was removed").ThrowAsJavaScriptException();
  return nullptr;
}

Napi::Value NativeContext::stats(const Napi::CallbackInfo& info) {
  Engine* engine = this->engine(info);
  if (engine == nullptr) return {};
  return stats_object(info.Env(), engine->context(), engine->pump().counters());
}

void NativeContext::name_method(const Napi::CallbackInfo& info) {
  if (engine_ == nullptr) return;
  engine_->context().page().latencies().name(info[0].As<Napi::Number>().Uint32Value(),
                                             info[1].As<Napi::String>().Utf8Value());
}

void NativeContext::leave_device(const Napi::CallbackInfo&) {
  if (engine_ != nullptr) engine_->leave_device();
}

void NativeContext::on_events(const Napi::CallbackInfo& info) {
  if (Engine* engine = this->engine(info)) engine->set_callback(info[0].As<Napi::Function>());
}

Napi::Value NativeContext::step_sim(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), engine_ != nullptr && engine_->step());
}

void NativeContext::close(const Napi::CallbackInfo&) {
  if (Engine* engine = std::exchange(engine_, nullptr)) engine->close();
}

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
