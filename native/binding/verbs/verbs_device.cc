// See verbs_device.h.
#include "binding/verbs/verbs_device.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "binding/objects/engine_options.h"
#include "binding/objects/given.h"
#include "binding/objects/own_properties.h"
#include "binding/objects/peer_address.h"
#include "binding/objects/verbs_report.h"
#include "binding/verbs/verbs_host.h"
#include "checked/records.h"

namespace rdma_rpc::binding {
namespace {

using checked::Cause;
using checked::Refusal;

std::uint32_t number(const Napi::CallbackInfo& info, std::size_t index) {
  return info[index].As<Napi::Number>().Uint32Value();
}

/// undefined, or the refusal as an object.
Napi::Value told(Napi::Env env, const Refusal& refusal) {
  if (refusal.none()) return env.Undefined();
  auto result = Napi::Object::New(env);
  result.Set("cause", static_cast<std::uint32_t>(refusal.cause));
  result.Set("text", refusal.text);
  return result;
}

Refusal closed() { return refuse(Cause::closed, "it was closed"); }

/// The rows of a Float64Array, or fewer than `count` of them when it has been detached.
std::span<double> rows_of(const Napi::Value& value) {
  double* data = nullptr;
  std::size_t length = 0;
  napi_typedarray_type type = napi_float64_array;
  void* raw = nullptr;
  if (napi_get_typedarray_info(value.Env(), value, &type, &length, &raw, nullptr, nullptr) != napi_ok ||
      type != napi_float64_array)
    return {};
  data = static_cast<double*>(raw);
  return {data, length};
}

/// The bytes of a Uint8Array, which may show a SharedArrayBuffer.
std::span<std::byte> bytes_of(const Napi::Value& value) {
  std::size_t length = 0;
  void* raw = nullptr;
  if (napi_get_typedarray_info(value.Env(), value, nullptr, &length, &raw, nullptr, nullptr) != napi_ok)
    return {};
  return {static_cast<std::byte*>(raw), length};
}

class VerbsDevice : public Napi::ObjectWrap<VerbsDevice> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "VerbsDevice",
                       {
                           InstanceMethod<&VerbsDevice::alloc_buffer>("allocBuffer"),
                           InstanceMethod<&VerbsDevice::owns>("owns"),
                           InstanceMethod<&VerbsDevice::reg_mr>("regMr"),
                           InstanceMethod<&VerbsDevice::create_cq>("createCq"),
                           InstanceMethod<&VerbsDevice::create_qp>("createQp"),
                           InstanceMethod<&VerbsDevice::close_mr>("closeMr"),
                           InstanceMethod<&VerbsDevice::close_cq>("closeCq"),
                           InstanceMethod<&VerbsDevice::close_qp>("closeQp"),
                           InstanceMethod<&VerbsDevice::address>("address"),
                           InstanceMethod<&VerbsDevice::connect>("connect"),
                           InstanceMethod<&VerbsDevice::state>("state"),
                           InstanceMethod<&VerbsDevice::error>("error"),
                           InstanceMethod<&VerbsDevice::to_error>("toError"),
                           InstanceMethod<&VerbsDevice::room>("room"),
                           InstanceMethod<&VerbsDevice::drive>("drive"),
                           InstanceMethod<&VerbsDevice::arm>("arm"),
                           InstanceMethod<&VerbsDevice::counters>("counters"),
                           InstanceMethod<&VerbsDevice::is_gone>("isGone"),
                           InstanceMethod<&VerbsDevice::close>("close"),
                       });
  }

  explicit VerbsDevice(const Napi::CallbackInfo& info) : Napi::ObjectWrap<VerbsDevice>(info) {
    const Napi::Env env = info.Env();
    const auto given = info[0].As<Napi::Object>();
    OpenOptions options;
    options.fabric = given.Get("fabric").As<Napi::String>().Utf8Value();
    if (given.Get("seed").IsNumber()) options.seed = u64(given, "seed");
    if (given.Get("host").IsString()) options.host = given.Get("host").As<Napi::String>().Utf8Value();
    options.verbs = read_verbs(given.Get("verbs"));
    options.verbs.on_demand = given.Get("onDemand").ToBoolean();
    const LoopKind loop = given.Get("loop").IsString() ? LoopKind::thread : LoopKind::libuv;
    std::string error;
    host_ = VerbsHost::open(env, loop, options, &error);
    if (host_ == nullptr) {
      Napi::Error::New(env, error).ThrowAsJavaScriptException();
      return;
    }
    host_->set_owner(&host_);
    const auto self = info.This().As<Napi::Object>();
    give(self, "capabilities", capabilities_object(env, host_->device().capabilities()));
    give_method<&VerbsDevice::post_send>(self, "postSend", this);
    give_method<&VerbsDevice::post_recv>(self, "postRecv", this);
    give_method<&VerbsDevice::poll>(self, "poll", this);
  }

  ~VerbsDevice() override {
    if (host_ != nullptr) host_->close();
  }

 private:
  /// Null for a queue pair that was closed, or whose device was.
  checked::QueuePair* qp(const Napi::CallbackInfo& info) {
    return host_ == nullptr ? nullptr : host_->qps.find(number(info, 0)).get();
  }
  checked::CompletionQueue* cq(const Napi::CallbackInfo& info) {
    return host_ == nullptr ? nullptr : host_->cqs.find(number(info, 0)).get();
  }

  Napi::Value alloc_buffer(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    if (host_ == nullptr) return told(env, closed());
    const auto block =
        host_->fabric().alloc(static_cast<std::size_t>(info[0].As<Napi::Number>().Int64Value()));
    if (block == nullptr) return told(env, refuse(Cause::refused, host_->device().on_device()->refusal()));
    return buffer_of(env, block);
  }

  Napi::Value owns(const Napi::CallbackInfo& info) {
    const std::span<std::byte> bytes = bytes_of(info[0]);
    return Napi::Boolean::New(info.Env(), find_owned(bytes.data(), bytes.size()) != nullptr);
  }

  /// regMr(bytes, access). The bytes lie in memory of allocBuffer() or in a SharedArrayBuffer, which nobody
  /// can take away while it is referenced.
  Napi::Value reg_mr(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    if (host_ == nullptr) return told(env, closed());
    const std::span<std::byte> bytes = bytes_of(info[0]);
    checked::Memory memory{bytes.data(), bytes.size(), find_owned(bytes.data(), bytes.size())};
    if (memory.owner == nullptr) memory.owner = kept(info[0]);
    std::shared_ptr<checked::Region> region;
    const Refusal refusal = host_->device().reg_mr(std::move(memory), number(info, 1), &region);
    if (!refusal.none()) return told(env, refusal);
    auto result = Napi::Object::New(env);
    result.Set("addr", static_cast<double>(region->on_device().addr()));
    result.Set("lkey", region->on_device().lkey());
    result.Set("rkey", region->on_device().rkey());
    result.Set("number", host_->regions.add(std::move(region)));
    return result;
  }

  static std::shared_ptr<const void> kept(const Napi::Value& value) {
    const napi_env env = value.Env();
    napi_ref reference = nullptr;
    if (napi_create_reference(env, value, 1, &reference) != napi_ok) return nullptr;
    return {reference, [env](const void* ended) {
              napi_delete_reference(env, static_cast<napi_ref>(const_cast<void*>(ended)));
            }};
  }

  Napi::Value create_cq(const Napi::CallbackInfo& info) {
    if (host_ == nullptr) return told(info.Env(), closed());
    std::shared_ptr<checked::CompletionQueue> cq;
    const Refusal refusal = host_->device().create_cq(number(info, 0), &cq);
    if (!refusal.none()) return told(info.Env(), refusal);
    return Napi::Number::New(info.Env(), host_->cqs.add(std::move(cq)));
  }

  Napi::Value create_qp(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    if (host_ == nullptr) return told(env, closed());
    const auto given = info[0].As<Napi::Object>();
    const auto cq = host_->cqs.find(u32(given, "cq"));
    if (cq == nullptr) return told(env, closed());
    checked::QueuePairOptions options;
    options.fabric.send_wr_max = u32(given, "sendWrMax");
    options.fabric.recv_wr_max = u32(given, "recvWrMax");
    options.fabric.active = given.Get("active").ToBoolean();
    options.sge_max = u32(given, "sgeMax");
    std::shared_ptr<checked::QueuePair> qp;
    const Refusal refusal = host_->device().create_qp(cq, options, &qp);
    if (!refusal.none()) return told(env, refusal);
    auto result = Napi::Object::New(env);
    result.Set("qpNum", qp->on_device().qp_num());
    result.Set("number", host_->qps.add(std::move(qp)));
    return result;
  }

  void close_mr(const Napi::CallbackInfo& info) {
    if (host_ != nullptr) host_->close_region(number(info, 0));
  }
  void close_cq(const Napi::CallbackInfo& info) {
    if (host_ != nullptr) host_->close_cq(number(info, 0));
  }
  void close_qp(const Napi::CallbackInfo& info) {
    if (host_ != nullptr) host_->qps.remove(number(info, 0));
  }

  Napi::Value address(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    if (found == nullptr) return told(info.Env(), closed());
    return own_address(info.Env(), found->on_device().local_address());
  }
  Napi::Value connect(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    if (found == nullptr) return told(info.Env(), closed());
    const std::span<std::byte> blob = bytes_of(info[1]);
    std::string why = found->on_device().connect(blob);
    return told(info.Env(), why.empty() ? Refusal() : refuse(Cause::refused, std::move(why)));
  }
  /// The state by its number in QpState, or -1 for a closed queue pair.
  Napi::Value state(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    const int state = found == nullptr ? -1 : static_cast<int>(found->on_device().state());
    return Napi::Number::New(info.Env(), state);
  }
  Napi::Value error(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    return Napi::String::New(info.Env(), found == nullptr ? std::string() : found->on_device().error());
  }
  void to_error(const Napi::CallbackInfo& info) {
    if (checked::QueuePair* found = qp(info)) found->on_device().to_error();
  }
  /// room(queue pair, of the receive queue?)
  Napi::Value room(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    if (found == nullptr) return Napi::Number::New(info.Env(), 0);
    return Napi::Number::New(info.Env(), info[1].ToBoolean() ? found->recv_room() : found->send_room());
  }

  Napi::Value post_send(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    if (found == nullptr) return told(info.Env(), closed());
    const std::span<const double> rows = rows_of(info[1]);
    const std::size_t count = number(info, 2), sges = number(info, 3);
    const std::size_t columns = checked::send_record::header + sges * checked::sge_record::words;
    if (count > rows.size() / columns)
      return told(info.Env(), refuse(Cause::range, "the batch has fewer rows"));
    return told(info.Env(), found->post_send(rows, count, sges));
  }
  Napi::Value post_recv(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    if (found == nullptr) return told(info.Env(), closed());
    const std::span<const double> rows = rows_of(info[1]);
    const std::size_t count = number(info, 2);
    if (count > rows.size() / checked::recv_record::words)
      return told(info.Env(), refuse(Cause::range, "the batch has fewer rows"));
    return told(info.Env(), found->post_recv(rows, count));
  }

  /// poll(completion queue, rows): the number of completions, or -1 for a closed queue.
  Napi::Value poll(const Napi::CallbackInfo& info) {
    checked::CompletionQueue* found = cq(info);
    if (found == nullptr) return Napi::Number::New(info.Env(), -1);
    return Napi::Number::New(info.Env(), static_cast<double>(found->poll(rows_of(info[1]))));
  }
  Napi::Value drive(const Napi::CallbackInfo& info) {
    checked::CompletionQueue* found = cq(info);
    return Napi::Boolean::New(info.Env(), found != nullptr && found->drive());
  }
  /// arm(completion queue, callback): true when the callback will be called, false when there may be
  /// completions already, or the reason why nothing can wait here.
  Napi::Value arm(const Napi::CallbackInfo& info) {
    if (cq(info) == nullptr) return Napi::Boolean::New(info.Env(), false);
    std::string error;
    const bool armed = host_->arm(number(info, 0), info[1].As<Napi::Function>(), &error);
    if (!error.empty()) return Napi::String::New(info.Env(), error);
    return Napi::Boolean::New(info.Env(), armed);
  }

  Napi::Value counters(const Napi::CallbackInfo& info) {
    auto result = Napi::Object::New(info.Env());
    if (host_ == nullptr) return result;
    const fabric::DeviceCounters counters = host_->device().on_device()->counters();
    result.Set("queuePairs", static_cast<double>(counters.queue_pairs));
    result.Set("memoryRegions", static_cast<double>(counters.memory_regions));
    result.Set("memoryBytes", static_cast<double>(counters.memory_bytes));
    return result;
  }
  Napi::Value is_gone(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), host_ != nullptr && host_->device().on_device()->is_gone());
  }
  void close(const Napi::CallbackInfo&) {
    if (VerbsHost* host = std::exchange(host_, nullptr)) host->close();
  }

  VerbsHost* host_ = nullptr;
};

Napi::Value records(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto result = Napi::Object::New(env);
  const auto group = [&](const char* name,
                         std::initializer_list<std::pair<const char*, std::size_t>> values) {
    auto object = Napi::Object::New(env);
    for (const auto& [key, value] : values) object.Set(key, static_cast<double>(value));
    result.Set(name, object);
  };
  namespace send = checked::send_record;
  namespace sge = checked::sge_record;
  namespace recv = checked::recv_record;
  namespace done = checked::completion_record;
  group("SendRow", {{"wrId", send::wr_id},
                    {"opcode", send::opcode},
                    {"flags", send::flags},
                    {"sges", send::sges},
                    {"remoteAddr", send::remote_addr},
                    {"rkey", send::rkey},
                    {"imm", send::imm},
                    {"invalidateRkey", send::invalidate_rkey},
                    {"header", send::header}});
  group("SgeRow", {{"addr", sge::addr}, {"length", sge::length}, {"lkey", sge::lkey}, {"words", sge::words}});
  group("RecvRow", {{"wrId", recv::wr_id},
                    {"addr", recv::addr},
                    {"length", recv::length},
                    {"lkey", recv::lkey},
                    {"words", recv::words}});
  group("CompletionRow", {{"wrId", done::wr_id},
                          {"status", done::status},
                          {"opcode", done::opcode},
                          {"flags", done::flags},
                          {"qpNum", done::qp_num},
                          {"bytes", done::bytes},
                          {"imm", done::imm},
                          {"invalidatedRkey", done::invalidated_rkey},
                          {"words", done::words}});
  return result;
}

}  // namespace

void define_verbs_devices(Napi::Env env, Napi::Object exports) {
  auto constructor = std::make_shared<Napi::FunctionReference>(Napi::Persistent(VerbsDevice::define(env)));
  exports.Set("openVerbsDevice",
              Napi::Function::New(env, [constructor](const Napi::CallbackInfo& info) -> Napi::Value {
                return constructor->New({info[0]});
              }));
  exports.Set("verbsRecords", Napi::Function::New(env, records));
}

}  // namespace rdma_rpc::binding
