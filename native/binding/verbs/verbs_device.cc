// See verbs_device.h.
#include "binding/verbs/verbs_device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding/objects/given.h"
#include "binding/objects/own_properties.h"
#include "binding/objects/peer_address.h"
#include "binding/objects/verbs_report.h"
#include "binding/verbs/arguments.h"
#include "binding/verbs/hot_calls.h"
#include "binding/verbs/open_options.h"
#include "binding/verbs/verbs_host.h"
#include "binding/verbs/verbs_records.h"

namespace rdma_rpc::binding {
namespace {

using checked::Cause;
using checked::Refusal;

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
                           InstanceMethod<&VerbsDevice::create_srq>("createSrq"),
                           InstanceMethod<&VerbsDevice::create_ah>("createAh"),
                           InstanceMethod<&VerbsDevice::alloc_mw>("allocMw"),
                           InstanceMethod<&VerbsDevice::mw_rkey>("mwRkey"),
                           InstanceMethod<&VerbsDevice::close_mw>("closeMw"),
                           InstanceMethod<&VerbsDevice::close_srq>("closeSrq"),
                           InstanceMethod<&VerbsDevice::close_ah>("closeAh"),
                           InstanceMethod<&VerbsDevice::arm_limit>("armLimit"),
                           InstanceMethod<&VerbsDevice::srq_room>("srqRoom"),
                           InstanceMethod<&VerbsDevice::modify>("modify"),
                           InstanceMethod<&VerbsDevice::multicast>("multicast"),
                           InstanceMethod<&VerbsDevice::gid>("gid"),
                           InstanceMethod<&VerbsDevice::events>("events"),
                           InstanceMethod<&VerbsDevice::why_not>("whyNot"),
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
    const LoopKind loop = given.Get("loop").IsString() ? LoopKind::thread : LoopKind::libuv;
    std::string error;
    host_ = VerbsHost::open(env, loop, read_open_options(given), &error);
    if (host_ == nullptr) {
      Napi::Error::New(env, error).ThrowAsJavaScriptException();
      return;
    }
    host_->set_owner(&host_);
    const auto self = info.This().As<Napi::Object>();
    give(self, "capabilities", capabilities_object(env, host_->device().capabilities()));
    hot_calls_.give_to(self);
  }

  ~VerbsDevice() override {
    if (host_ != nullptr) host_->close();
  }

 private:
  /// Returns null when the queue pair or its device was closed.
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

  /// regMr(bytes, access). The bytes lie in memory of allocBuffer() or in a SharedArrayBuffer, which cannot
  /// be detached while it is referenced.
  Napi::Value reg_mr(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    if (host_ == nullptr) return told(env, closed());
    const std::span<std::byte> bytes = bytes_of(info[0]);
    checked::Memory memory{bytes.data(), bytes.size(), find_owned(bytes.data(), bytes.size())};
    if (memory.owner == nullptr) memory.owner = kept(info[0]);
    checked::Ref<checked::Region> region;
    const Refusal refusal = host_->device().reg_mr(std::move(memory), number(info, 1), &region);
    if (!refusal.none()) return told(env, refusal);
    auto result = Napi::Object::New(env);
    result.Set("addr", static_cast<double>(region->on_device().addr()));
    result.Set("lkey", region->on_device().lkey());
    result.Set("rkey", region->on_device().rkey());
    result.Set("number", host_->regions.add(std::move(region)));
    return result;
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
    options.fabric.type = static_cast<fabric::QpType>(u32(given, "type"));
    options.fabric.qkey = u32(given, "qkey");
    if (given.Get("srq").IsNumber()) {
      options.shared_receives = host_->srqs.find(u32(given, "srq"));
      if (options.shared_receives == nullptr) return told(env, closed());
      options.fabric.shared_receives = &options.shared_receives->on_device();
    }
    options.fabric.send_wr_max = u32(given, "sendWrMax");
    options.fabric.recv_wr_max = u32(given, "recvWrMax");
    options.fabric.active = given.Get("active").ToBoolean();
    options.fabric.stepwise = given.Get("steps").ToBoolean();
    options.sge_max = u32(given, "sgeMax");
    std::shared_ptr<checked::QueuePair> qp;
    const Refusal refusal = host_->device().create_qp(cq, options, &qp);
    if (!refusal.none()) return told(env, refusal);
    auto result = Napi::Object::New(env);
    result.Set("qpNum", qp->on_device().qp_num());
    result.Set("number", host_->qps.add(std::move(qp)));
    return result;
  }

  Napi::Value create_srq(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const auto cq = host_ == nullptr ? nullptr : host_->cqs.find(number(info, 0));
    if (cq == nullptr) return told(env, closed());
    std::shared_ptr<checked::SharedReceives> srq;
    const Refusal refusal = host_->device().create_srq(cq, number(info, 1), &srq);
    if (!refusal.none()) return told(env, refusal);
    return Napi::Number::New(env, host_->srqs.add(std::move(srq)));
  }
  /// createAh(gid of 16 bytes, lid, service level, traffic class, hop limit)
  Napi::Value create_ah(const Napi::CallbackInfo& info) {
    if (host_ == nullptr) return told(info.Env(), closed());
    fabric::AhAttr attr;
    attr.gid = gid_of(info[0]);
    attr.lid = static_cast<std::uint16_t>(number(info, 1));
    attr.service_level = static_cast<std::uint8_t>(number(info, 2));
    attr.traffic_class = static_cast<std::uint8_t>(number(info, 3));
    attr.hop_limit = static_cast<std::uint8_t>(number(info, 4));
    std::uint32_t made = 0;
    const Refusal refusal = host_->device().create_ah(attr, &made);
    return refusal.none() ? Napi::Number::New(info.Env(), made) : told(info.Env(), refusal);
  }
  Napi::Value alloc_mw(const Napi::CallbackInfo& info) {
    if (host_ == nullptr) return told(info.Env(), closed());
    std::uint32_t made = 0;
    const Refusal refusal = host_->device().alloc_mw(&made);
    return refusal.none() ? Napi::Number::New(info.Env(), made) : told(info.Env(), refusal);
  }
  /// mwRkey(window): the key of the window's last bind; 0 before the first bind.
  Napi::Value mw_rkey(const Napi::CallbackInfo& info) {
    const checked::Window* window = host_ == nullptr ? nullptr : host_->device().window(number(info, 0));
    return Napi::Number::New(info.Env(), window == nullptr ? 0 : window->rkey());
  }
  void close_mw(const Napi::CallbackInfo& info) {
    if (host_ != nullptr) host_->device().close_mw(number(info, 0));
  }
  void close_srq(const Napi::CallbackInfo& info) {
    if (host_ != nullptr) host_->srqs.remove(number(info, 0));
  }
  void close_ah(const Napi::CallbackInfo& info) {
    if (host_ != nullptr) host_->device().close_ah(number(info, 0));
  }
  checked::SharedReceives* srq(const Napi::CallbackInfo& info) {
    return host_ == nullptr ? nullptr : host_->srqs.find(number(info, 0)).get();
  }
  Napi::Value arm_limit(const Napi::CallbackInfo& info) {
    checked::SharedReceives* found = srq(info);
    if (found == nullptr) return told(info.Env(), closed());
    std::string why = found->on_device().arm_limit(number(info, 1));
    return told(info.Env(), why.empty() ? Refusal() : refuse(Cause::unsupported, std::move(why)));
  }
  Napi::Value srq_room(const Napi::CallbackInfo& info) {
    checked::SharedReceives* found = srq(info);
    return Napi::Number::New(info.Env(), found == nullptr ? 0 : found->room());
  }

  /// modify(queue pair, number of the state)
  Napi::Value modify(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    if (found == nullptr) return told(info.Env(), closed());
    return told(info.Env(), found->move_to(static_cast<fabric::QpState>(number(info, 1))));
  }
  /// multicast(queue pair, gid of the group, join or leave)
  Napi::Value multicast(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    if (found == nullptr) return told(info.Env(), closed());
    const fabric::Gid group = gid_of(info[1]);
    std::string why = info[2].ToBoolean() ? found->on_device().attach_multicast(group)
                                          : found->on_device().detach_multicast(group);
    return told(info.Env(), why.empty() ? Refusal() : refuse(Cause::refused, std::move(why)));
  }
  Napi::Value gid(const Napi::CallbackInfo& info) {
    if (host_ == nullptr) return told(info.Env(), closed());
    const fabric::Gid gid = host_->device().on_device()->gid();
    auto bytes = Napi::Uint8Array::New(info.Env(), gid.size());
    std::memcpy(bytes.Data(), gid.data(), gid.size());
    return bytes;
  }
  /// events(): for each event, its name and the number of its queue pair, in one list.
  Napi::Value events(const Napi::CallbackInfo& info) {
    auto result = Napi::Array::New(info.Env());
    if (host_ == nullptr) return result;
    std::array<fabric::AsyncEvent, 16> events{};
    const std::size_t count = host_->device().on_device()->poll_events(events);
    for (std::uint32_t i = 0; i < count; ++i) {
      result.Set(2 * i, fabric::to_string(events[i].kind));
      result.Set(2 * i + 1, events[i].qp_num);
    }
    return result;
  }
  /// whyNot(number of the feature): '' when the device has the feature, otherwise the reason.
  Napi::Value why_not(const Napi::CallbackInfo& info) {
    const auto feature = static_cast<fabric::Feature>(number(info, 0));
    return Napi::String::New(info.Env(), host_ == nullptr ? std::string("the device is closed")
                                                          : host_->device().capabilities().why_not(feature));
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
  /// connect(queue pair, address of the peer, host or path, port, initial bytes). The last three arguments
  /// have the same meaning as for connectSession().
  Napi::Value connect(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    if (found == nullptr) return told(info.Env(), closed());
    std::string why;
    const std::vector<std::byte> address = read_peer_address(info, &why);
    const std::optional<fabric::FirstWords> words = read_first_words(info, &why);
    if (why.empty()) {
      if (words) found->on_device().set_first_words(*words);
      why = found->on_device().connect(address);
    }
    return told(info.Env(), why.empty() ? Refusal() : refuse(Cause::refused, std::move(why)));
  }
  /// state(queue pair): the number of the state in QpState, or -1 for a closed queue pair.
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
  /// room(queue pair, true for its receive queue)
  Napi::Value room(const Napi::CallbackInfo& info) {
    checked::QueuePair* found = qp(info);
    if (found == nullptr) return Napi::Number::New(info.Env(), 0);
    return Napi::Number::New(info.Env(), info[1].ToBoolean() ? found->recv_room() : found->send_room());
  }

  Napi::Value drive(const Napi::CallbackInfo& info) {
    checked::CompletionQueue* found = cq(info);
    return Napi::Boolean::New(info.Env(), found != nullptr && found->drive());
  }
  /// arm(completion queue, callback, true for solicited completions only). Returns true when the callback
  /// will be called, false when completions may have arrived already, or the reason why this queue cannot be
  /// waited for.
  Napi::Value arm(const Napi::CallbackInfo& info) {
    if (cq(info) == nullptr) return Napi::Boolean::New(info.Env(), false);
    std::string error;
    const bool armed = host_->arm(number(info, 0), info[1].As<Napi::Function>(), info[2].ToBoolean(), &error);
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
  HotCalls hot_calls_{&host_};
};

}  // namespace

void define_verbs_devices(Napi::Env env, Napi::Object exports) {
  auto constructor = std::make_shared<Napi::FunctionReference>(Napi::Persistent(VerbsDevice::define(env)));
  exports.Set("openVerbsDevice",
              Napi::Function::New(env, [constructor](const Napi::CallbackInfo& info) -> Napi::Value {
                return constructor->New({info[0]});
              }));
  exports.Set("verbsRecords", Napi::Function::New(env, verbs_records));
}

}  // namespace rdma_rpc::binding
