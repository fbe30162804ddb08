// The calls of a context's sessions. See native_context.h.
#include <optional>
#include <utility>

#include "binding/context/native_context.h"
#include "binding/objects/given_gather_entries.h"

namespace rdma_rpc::binding {

namespace boundary = session::boundary;

void NativeContext::flush(const Napi::CallbackInfo&) {
  if (engine_ == nullptr) return;
  // The time of these calls is measured from now, because the last turn may have been long ago.
  engine_->context_now().flush();
  engine_->pump().kick();
}

Napi::Value NativeContext::segmented_bytes(const Napi::CallbackInfo& info) {
  session::Session* session = this->session(info);
  return session == nullptr ? Napi::Value() : Napi::Number::New(info.Env(), session->segmented_bytes());
}

Napi::Value NativeContext::take_long_slot(const Napi::CallbackInfo& info) {
  session::Session* found = find(info);
  std::optional<std::uint32_t> call;
  if (info.Length() > 1) call = info[1].As<Napi::Number>().Uint32Value();
  return Napi::Number::New(info.Env(), found == nullptr ? -1 : found->take_long_slot(call));
}

void NativeContext::release_long_slot(const Napi::CallbackInfo& info) {
  if (engine_ != nullptr) engine_->context().slots().give_long_back(info[0].As<Napi::Number>().Int32Value());
}

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

Napi::Value NativeContext::cancel(const Napi::CallbackInfo& info) {
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

void NativeContext::want(const Napi::CallbackInfo& info) {
  session::Session* found = find(info);
  if (found == nullptr) return;
  found->want(info[1].As<Napi::Number>().Uint32Value());
  engine_->pump().kick();
}

Napi::Value NativeContext::defer_handler(const Napi::CallbackInfo& info) {
  session::Session* found = find(info);
  const std::uint32_t call = info[1].As<Napi::Number>().Uint32Value();
  const bool waits = found != nullptr && found->defer_handler(call, info[2].As<Napi::Boolean>());
  return Napi::Boolean::New(info.Env(), waits);
}

void NativeContext::expect_response(const Napi::CallbackInfo& info) {
  if (engine_ == nullptr) return;
  engine_->context().expect_response(info[0].As<Napi::Number>().Uint32Value(),
                                     info[1].As<Napi::Number>().Uint32Value());
}

}  // namespace rdma_rpc::binding
