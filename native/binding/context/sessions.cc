// The sessions of a context. See native_context.h.
#include <optional>
#include <string>
#include <vector>

#include "binding/context/native_context.h"
#include "binding/objects/peer_address.h"
#include "binding/objects/session_object.h"
#include "binding/objects/session_options.h"
#include "binding/objects/trace_object.h"

namespace rdma_rpc::binding {

Napi::Value NativeContext::create_session(const Napi::CallbackInfo& info) {
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

Napi::Value NativeContext::session_address(const Napi::CallbackInfo& info) {
  session::Session* session = this->session(info);
  return session == nullptr ? Napi::Value() : own_address(info.Env(), session->local_address());
}

Napi::Value NativeContext::connect_session(const Napi::CallbackInfo& info) {
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

Napi::Value NativeContext::receive_window(const Napi::CallbackInfo& info) {
  session::Session* found = session(info);
  return found == nullptr ? Napi::Value() : engine_->receive_window(*found, info[1].As<Napi::Number>());
}

void NativeContext::close_session(const Napi::CallbackInfo& info) {
  session::Session* found = find(info);
  if (found == nullptr) return;
  engine_->context_now();
  found->close(info[1].As<Napi::String>().Utf8Value());
  engine_->pump().kick();
}

Napi::Value NativeContext::session_error(const Napi::CallbackInfo& info) {
  session::Session* session = this->session(info);
  return session == nullptr ? Napi::Value() : Napi::String::New(info.Env(), session->error());
}

Napi::Value NativeContext::session_trace(const Napi::CallbackInfo& info) {
  session::Session* session = this->session(info);
  return session == nullptr ? Napi::Value() : trace_object(info.Env(), engine_->context(), *session);
}

Napi::Value NativeContext::session_info(const Napi::CallbackInfo& info) {
  session::Session* session = this->session(info);
  return session == nullptr ? Napi::Value() : session_object(info.Env(), engine_->context(), *session);
}

Napi::Value NativeContext::session_path(const Napi::CallbackInfo& info) {
  const session::Session* found = find(info);
  const auto progress = found == nullptr ? std::nullopt : found->path_progress();
  if (!progress) return info.Env().Undefined();
  auto result = Napi::Object::New(info.Env());
  result.Set("acknowledged", static_cast<double>(progress->acknowledged));
  result.Set("pending", static_cast<double>(progress->pending));
  result.Set("received", static_cast<double>(progress->received));
  return result;
}

void NativeContext::name_session(const Napi::CallbackInfo& info) {
  if (engine_ == nullptr) return;
  engine_->context().name_session(info[0].As<Napi::Number>().Uint32Value(),
                                  info[1].As<Napi::String>().Utf8Value(),
                                  info[2].As<Napi::Number>().Uint32Value());
}

}  // namespace rdma_rpc::binding
