// Implements the object that runtime/native/native.ts declares as NativeContext. The object only checks
// arguments and passes them on. The class is defined in four files: native_context.cc (creation and end),
// sessions.cc, calls.cc and memory.cc. This code runs on the JS thread.
#pragma once

#include <napi.h>

#include "binding/engine.h"

namespace rdma_rpc::binding {

class NativeContext : public Napi::ObjectWrap<NativeContext> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit NativeContext(const Napi::CallbackInfo& info);
  ~NativeContext() override {
    if (engine_ != nullptr) engine_->close();
  }

 private:
  /// Returns the engine, or null with an exception pending.
  Engine* engine(const Napi::CallbackInfo& info);
  /// Returns the engine while it has its device, or null with an exception pending.
  Engine* working(const Napi::CallbackInfo& info);
  /// Returns the session, or null when the session or the context is closed.
  session::Session* find(const Napi::CallbackInfo& info);
  /// Returns the session, or null with an exception pending.
  session::Session* session(const Napi::CallbackInfo& info);

  Napi::Value stats(const Napi::CallbackInfo& info);
  void name_method(const Napi::CallbackInfo& info);
  void leave_device(const Napi::CallbackInfo& info);
  void on_events(const Napi::CallbackInfo& info);
  Napi::Value step_sim(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);

  // sessions.cc
  Napi::Value create_session(const Napi::CallbackInfo& info);
  Napi::Value session_address(const Napi::CallbackInfo& info);
  Napi::Value connect_session(const Napi::CallbackInfo& info);
  Napi::Value receive_window(const Napi::CallbackInfo& info);
  void close_session(const Napi::CallbackInfo& info);
  Napi::Value session_error(const Napi::CallbackInfo& info);
  Napi::Value session_trace(const Napi::CallbackInfo& info);
  Napi::Value session_path(const Napi::CallbackInfo& info);
  Napi::Value session_info(const Napi::CallbackInfo& info);
  void name_session(const Napi::CallbackInfo& info);

  // calls.cc
  void flush(const Napi::CallbackInfo& info);
  Napi::Value segmented_bytes(const Napi::CallbackInfo& info);
  Napi::Value take_long_slot(const Napi::CallbackInfo& info);
  void release_long_slot(const Napi::CallbackInfo& info);
  Napi::Value submit_bulk(const Napi::CallbackInfo& info);
  Napi::Value cancel(const Napi::CallbackInfo& info);
  void want(const Napi::CallbackInfo& info);
  Napi::Value defer_handler(const Napi::CallbackInfo& info);
  void expect_response(const Napi::CallbackInfo& info);

  // memory.cc
  Napi::Value alloc_block(const Napi::CallbackInfo& info);
  Napi::Value alloc_buffer(const Napi::CallbackInfo& info);
  Napi::Value refusal(const Napi::CallbackInfo& info);
  Napi::Value block_buffer(const Napi::CallbackInfo& info);
  template <void (BlockBuffers::*give)(memory::BlockId)>
  void give_block(const Napi::CallbackInfo& info) {
    if (engine_ == nullptr) return;
    (engine_->blocks().*give)(info[0].As<Napi::Number>().Uint32Value());
    if (engine_->context().awaits_memory()) engine_->pump().kick();
  }
  Napi::Value block_of(const Napi::CallbackInfo& info);
  Napi::Value register_buffer(const Napi::CallbackInfo& info);
  Napi::Value holds_buffer(const Napi::CallbackInfo& info);

  Engine* engine_ = nullptr;
};

/// Defines createContext() and boundary() on the module's exports.
void define_module(Napi::Env env, Napi::Object exports);

}  // namespace rdma_rpc::binding
