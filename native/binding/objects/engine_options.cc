// See engine_options.h.
#include "binding/objects/engine_options.h"

#include <string>
#include <type_traits>

#include "binding/objects/given.h"

namespace rdma_rpc::binding {

/// Reads limits whose ranges runtime/core/options.ts has checked. Missing fields keep their defaults.
fabric::VerbsOptions read_verbs(const Napi::Value& value) {
  fabric::VerbsOptions options;
  if (!value.IsObject()) return options;
  const auto given = value.As<Napi::Object>();
  const auto text = [&given](const char* name) {
    const Napi::Value found = given.Get(name);
    return found.IsString() ? found.As<Napi::String>().Utf8Value() : std::string();
  };
  const auto number = [&given](const char* name, auto& to) {
    if (given.Get(name).IsNumber()) to = static_cast<std::remove_reference_t<decltype(to)>>(u32(given, name));
  };
  options.device = text("device");
  options.address = text("address");
  number("port", options.port);
  number("gidIndex", options.gid_index);
  number("pkeyIndex", options.pkey_index);
  const std::string connect = text("connect");
  options.connect = connect == "cm"         ? fabric::VerbsConnect::cm
                    : connect == "sideband" ? fabric::VerbsConnect::sideband
                                            : fabric::VerbsConnect::automatic;
  number("connectTimeoutMs", options.connect_timeout_ms);
  number("ackTimeout", options.ack_timeout);
  number("retryCount", options.retry_count);
  number("rnrRetry", options.rnr_retry);
  number("trafficClass", options.traffic_class);
  number("serviceLevel", options.service_level);
  number("tos", options.tos);
  return options;
}

EngineOptions read_options(const Napi::Object& given) {
  EngineOptions options;
  options.fabric = given.Get("fabric").As<Napi::String>().Utf8Value();
  const std::string polling = given.Get("polling").As<Napi::String>().Utf8Value();
  options.polling = polling == "busy"    ? Polling::busy
                    : polling == "event" ? Polling::event
                                         : Polling::adaptive;
  const auto is = [&given](const char* name, const char* value) {
    const Napi::Value found = given.Get(name);
    return found.IsString() && found.As<Napi::String>().Utf8Value() == value;
  };
  if (is("loop", "thread")) options.loop = LoopKind::thread;
  options.clock = given.Get("clock").As<Napi::Function>();
  if (given.Get("collectYoung").IsFunction())
    options.collect_young = given.Get("collectYoung").As<Napi::Function>();
  if (is("collected", "object")) options.collected = Collected::object;
  options.context.publish_counters = given.Get("countersPage").ToBoolean();
  options.context.slot_bytes = u32(given, "slotBytes");
  options.context.send_slots = u32(given, "sendSlots");
  options.context.arena.budget_bytes = u64(given, "arenaBytes");
  options.context.mr_cache.max_bytes = u64(given, "mrCacheBytes");
  options.context.mr_cache.max_entries = u64(given, "mrCacheEntriesMax");
  options.context.mr_cache.idle_ns = u64(given, "mrCacheIdleMs") * 1'000'000;
  const Napi::Value exposure = given.Get("exposure");
  if (exposure.IsString()) {
    const std::string name = exposure.As<Napi::String>().Utf8Value();
    options.context.exposure = name == "staging"  ? session::Exposure::staging
                               : name == "shared" ? session::Exposure::shared
                                                  : session::Exposure::automatic;
  }
  if (given.Get("stagingBytes").IsNumber()) options.staging_bytes = u64(given, "stagingBytes");
  options.context.mr_cache.on_demand = given.Get("onDemand").ToBoolean();
  if (given.Get("seed").IsNumber()) options.seed = u64(given, "seed");
  options.stepped = given.Get("stepped").ToBoolean();
  options.verbs = read_verbs(given.Get("verbs"));
  options.verbs.on_demand = options.context.mr_cache.on_demand;
  options.verbs.relaxed_ordering = true;
  return options;
}

}  // namespace rdma_rpc::binding
