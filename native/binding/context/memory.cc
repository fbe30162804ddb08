// The blocks of a context's arena, and the registered buffers of the application. See native_context.h.
#include <string>

#include "binding/context/native_context.h"

namespace rdma_rpc::binding {
namespace {

memory::BlockId lend_block(Engine& engine, const Napi::CallbackInfo& info) {
  const auto bytes = static_cast<std::size_t>(info[0].As<Napi::Number>().Int64Value());
  const auto use = static_cast<memory::Use>(info[1].As<Napi::Number>().Uint32Value());
  return engine.lend(bytes, use, info.Length() > 2 ? info[2].As<Napi::Number>().Uint32Value() : UINT32_MAX);
}

}  // namespace

Napi::Value NativeContext::alloc_block(const Napi::CallbackInfo& info) {
  Engine* engine = this->engine(info);
  return engine == nullptr ? Napi::Value() : Napi::Number::New(info.Env(), lend_block(*engine, info));
}

Napi::Value NativeContext::alloc_buffer(const Napi::CallbackInfo& info) {
  Engine* engine = this->engine(info);
  if (engine == nullptr) return {};
  const memory::BlockId block = lend_block(*engine, info);
  return block == memory::kNoBlock ? info.Env().Undefined() : engine->blocks().buffer(block);
}

Napi::Value NativeContext::refusal(const Napi::CallbackInfo& info) {
  Engine* engine = this->engine(info);
  return engine == nullptr ? Napi::Value() : Napi::String::New(info.Env(), engine->context().refusal());
}

Napi::Value NativeContext::block_buffer(const Napi::CallbackInfo& info) {
  Engine* engine = this->engine(info);
  if (engine == nullptr) return {};
  const Napi::Value buffer = engine->blocks().buffer(info[0].As<Napi::Number>().Uint32Value());
  if (buffer.IsEmpty()) Napi::Error::New(info.Env(), "rdma-rpc: no such block").ThrowAsJavaScriptException();
  return buffer;
}

Napi::Value NativeContext::block_of(const Napi::CallbackInfo& info) {
  if (engine_ == nullptr || !info[0].IsArrayBuffer()) return Napi::Number::New(info.Env(), 0);
  auto buffer = info[0].As<Napi::ArrayBuffer>();
  return Napi::Number::New(info.Env(), engine_->context().arena().find(buffer.Data(), 1));
}

Napi::Value NativeContext::register_buffer(const Napi::CallbackInfo& info) {
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

Napi::Value NativeContext::holds_buffer(const Napi::CallbackInfo& info) {
  const auto key = static_cast<std::uint64_t>(info[0].As<Napi::Number>().Int64Value());
  return Napi::Boolean::New(info.Env(), engine_ != nullptr && engine_->context().mr_cache().holds(key));
}

}  // namespace rdma_rpc::binding
