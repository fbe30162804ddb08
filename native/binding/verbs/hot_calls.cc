// See hot_calls.h.
#include "binding/verbs/hot_calls.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "binding/objects/own_properties.h"
#include "binding/verbs/arguments.h"
#include "checked/records.h"

namespace rdma_rpc::binding {
namespace {

using checked::Cause;

Napi::Value too_few_rows(Napi::Env env) {
  return told(env, refuse(Cause::range, "the batch has fewer rows"));
}

/// The records of a batch, and the stamp behind them (runtime/verbs/stamps.ts).
struct Batch {
  explicit Batch(const Napi::Value& value) : rows(rows_of(value)) {
    if (rows.empty()) return;
    stamp = rows.back();
    rows = rows.first(rows.size() - 1);
  }
  std::span<const double> rows;
  double stamp = 0;
};

}  // namespace

void HotCalls::give_to(const Napi::Object& self) {
  give_method<&HotCalls::post_send>(self, "postSend", this);
  give_method<&HotCalls::post_recv>(self, "postRecv", this);
  give_method<&HotCalls::post_shared>(self, "postShared", this);
  give_method<&HotCalls::poll>(self, "poll", this);
}

Napi::Value HotCalls::post_send(const Napi::CallbackInfo& info) {
  VerbsHost* host = *host_;
  checked::QueuePair* found = host == nullptr ? nullptr : host->qps.find(number(info, 0)).get();
  if (found == nullptr) return told(info.Env(), closed());
  const Batch batch(info[1]);
  const std::size_t count = number(info, 2), sges = number(info, 3);
  const std::size_t columns = checked::send_record::header + sges * checked::sge_record::words;
  if (count > batch.rows.size() / columns) return too_few_rows(info.Env());
  return told(info.Env(), found->post_send(batch.rows, count, sges, batch.stamp));
}

Napi::Value HotCalls::post_recv(const Napi::CallbackInfo& info) {
  VerbsHost* host = *host_;
  checked::QueuePair* found = host == nullptr ? nullptr : host->qps.find(number(info, 0)).get();
  if (found == nullptr) return told(info.Env(), closed());
  const Batch batch(info[1]);
  const std::size_t count = number(info, 2);
  if (count > batch.rows.size() / checked::recv_record::words) return too_few_rows(info.Env());
  return told(info.Env(), found->post_recv(batch.rows, count, batch.stamp));
}

Napi::Value HotCalls::post_shared(const Napi::CallbackInfo& info) {
  VerbsHost* host = *host_;
  checked::SharedReceives* found = host == nullptr ? nullptr : host->srqs.find(number(info, 0)).get();
  if (found == nullptr) return told(info.Env(), closed());
  const Batch batch(info[1]);
  const std::size_t count = number(info, 2);
  if (count > batch.rows.size() / checked::recv_record::words) return too_few_rows(info.Env());
  return told(info.Env(), found->post(batch.rows, count, batch.stamp));
}

Napi::Value HotCalls::poll(const Napi::CallbackInfo& info) {
  VerbsHost* host = *host_;
  checked::CompletionQueue* found = host == nullptr ? nullptr : host->cqs.find(number(info, 0)).get();
  if (found == nullptr) return Napi::Number::New(info.Env(), -1);
  return Napi::Number::New(info.Env(), static_cast<std::uint32_t>(found->poll(rows_of(info[1]))));
}

}  // namespace rdma_rpc::binding
