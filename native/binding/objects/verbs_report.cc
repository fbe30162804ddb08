// See verbs_report.h.
#include "binding/objects/verbs_report.h"

#include <algorithm>
#include <vector>

#include "fabric/verbs_loader.h"
#include "session/session.h"

namespace rdma_rpc::binding {
namespace {

template <typename T, typename Convert>
Napi::Array array(Napi::Env env, const std::vector<T>& values, Convert convert) {
  auto result = Napi::Array::New(env, values.size());
  for (std::uint32_t i = 0; i < values.size(); ++i) result.Set(i, convert(env, values[i]));
  return result;
}

Napi::Object gid(Napi::Env env, const fabric::VerbsGid& given) {
  auto result = Napi::Object::New(env);
  result.Set("index", given.index);
  result.Set("gid", given.gid);
  result.Set("type", given.type);
  result.Set("interface", given.interface);
  return result;
}

Napi::Object port(Napi::Env env, const fabric::VerbsPort& given) {
  auto result = Napi::Object::New(env);
  result.Set("number", given.number);
  result.Set("state", given.state);
  result.Set("linkLayer", given.link_layer);
  result.Set("activeMtu", given.active_mtu);
  result.Set("lid", given.lid);
  result.Set("gids", array(env, given.gids, gid));
  return result;
}

Napi::Object device(Napi::Env env, const fabric::VerbsDevice& given) {
  auto result = Napi::Object::New(env);
  result.Set("name", given.name);
  result.Set("transport", given.transport);
  // A device that was not tried has no capabilities, so its report cannot say why it is unfit.
  const bool tried = !given.capabilities.name.empty();
  const std::string unfit =
      given.why_not.empty() && tried ? session::Session::why_unfit(given.capabilities) : std::string();
  result.Set("whyNot", given.why_not.empty() ? unfit : given.why_not);
  result.Set("capabilities", capabilities_object(env, given.capabilities));
  result.Set("ports", array(env, given.ports, port));
  return result;
}

}  // namespace

Napi::Object capabilities_object(Napi::Env env, const fabric::Capabilities& given) {
  auto result = Napi::Object::New(env);
  result.Set("maxInline", given.max_inline);
  result.Set("maxSge", given.max_sge);
  result.Set("maxSgeRead", given.max_sge_read);
  result.Set("maxQpWr", given.max_qp_wr);
  result.Set("maxSrqWr", given.max_srq_wr);
  result.Set("maxRdAtomic", given.max_rd_atomic);
  result.Set("maxMsgBytes", static_cast<double>(given.max_msg_bytes));
  // On a fabric without a separate limit for WRITEs, the limit of messages applies.
  result.Set("maxWriteBytes",
             static_cast<double>(std::min<std::uint64_t>(given.max_write_bytes, given.max_msg_bytes)));
  result.Set("segmentedBytes", given.segmented_bytes);
  result.Set("windows", given.windows);
  result.Set("immediate", given.immediate);
  result.Set("onDemand", given.on_demand);
  result.Set("dmabuf", given.dmabuf);
  result.Set("pinsMemory", given.pins_memory);
  result.Set("anyMemory", given.exposes_any_memory);
  result.Set("copiesLate", given.reads_memory_late);
  result.Set("copiedRequestBytes", given.copied_request_bytes);
  result.Set("peersKeepAccess", given.peers_keep_access);
  result.Set("readsLandInStaging", given.read_sink_needs_remote_write);
  result.Set("notes", array(env, given.notes, [](Napi::Env env, const std::string& note) {
               return Napi::String::New(env, note);
             }));
  return result;
}

Napi::Object verbs_report(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  fabric::VerbsSearch search;
  search.needed_bytes = static_cast<std::size_t>(info[0].ToNumber().Int64Value());
  if (info[1].IsString()) search.device = info[1].ToString();
  if (info[2].IsNumber()) search.enough = info[2].ToNumber().Uint32Value();
  const fabric::VerbsReport report = fabric::list_verbs_devices(search);
  auto result = Napi::Object::New(env);
  result.Set("whyNone", report.why_none);
  result.Set("whyNoCm", report.why_no_cm);
  result.Set("memlock", report.memlock);
  result.Set("devices", array(env, report.devices, device));
  return result;
}

}  // namespace rdma_rpc::binding
