// See perf_objects.h.
#include "binding/objects/perf_objects.h"

#include <cstring>

#include "binding/objects/given.h"
#include "binding/objects/peer_address.h"

namespace rdma_rpc::binding {
namespace {

bool is(const Napi::Object& given, const char* name) { return given.Get(name).ToBoolean(); }
std::uint64_t big(const Napi::Object& given, const char* name) {
  const Napi::Value found = given.Get(name);
  bool lossless = false;
  return found.IsBigInt() ? found.As<Napi::BigInt>().Uint64Value(&lossless) : 0;
}
Napi::Value ns(Napi::Env env, std::uint64_t value) {
  return Napi::Number::New(env, static_cast<double>(value));
}

}  // namespace

perf::PairOptions read_pair_options(const Napi::Object& given) {
  return {.active = is(given, "active"),
          .queue_pairs = u32(given, "queuePairs"),
          .depth = u32(given, "depth"),
          .receive_depth = u32(given, "receiveDepth"),
          .bytes_max = u32(given, "bytesMax"),
          .inline_max = u32(given, "inlineMax"),
          .validate = is(given, "validate"),
          .events = is(given, "events"),
          .seed = u64(given, "seed")};
}

perf::Step read_step(const Napi::Object& given) {
  const std::string verb = given.Get("verb").ToString().Utf8Value();
  return {.verb = verb == "send"        ? perf::Verb::send
                  : verb == "write"     ? perf::Verb::write
                  : verb == "read"      ? perf::Verb::read
                  : verb == "fetch_add" ? perf::Verb::fetch_add
                                        : perf::Verb::compare_swap,
          .latency = is(given, "latency"),
          .measures = is(given, "measures"),
          .receives = is(given, "receives"),
          .bytes = u32(given, "bytes"),
          .messages = u64(given, "messages"),
          .duration_ns = u64(given, "durationNs"),
          .signal_every = u32(given, "signalEvery"),
          .post_list = u32(given, "postList")};
}

perf::PeerAddress read_perf_address(const Napi::Object& given) {
  perf::PeerAddress address;
  address.memory = {big(given, "addr"), big(given, "bytes"), u32(given, "rkey")};
  const auto each = given.Get("queuePairs").As<Napi::Array>();
  for (std::uint32_t i = 0; i < each.Length(); ++i) {
    const auto bytes = each.Get(i).As<Napi::Uint8Array>();
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.Data());
    address.queue_pairs.emplace_back(begin, begin + bytes.ByteLength());
  }
  return address;
}

Napi::Object perf_address(Napi::Env env, const perf::Endpoint& endpoint, std::uint32_t queue_pairs) {
  auto result = Napi::Object::New(env);
  const perf::Memory memory = endpoint.memory();
  result.Set("addr", Napi::BigInt::New(env, memory.addr));
  result.Set("bytes", Napi::BigInt::New(env, memory.bytes));
  result.Set("rkey", memory.rkey);
  auto each = Napi::Array::New(env, queue_pairs);
  for (std::uint32_t i = 0; i < queue_pairs; ++i) each.Set(i, own_address(env, endpoint.address(i)));
  result.Set("queuePairs", each);
  return result;
}

Napi::Object perf_limits(Napi::Env env, const perf::Limits& limits) {
  auto result = Napi::Object::New(env);
  result.Set("device", limits.device);
  result.Set("messageMax", static_cast<double>(limits.message_max));
  result.Set("atomic", limits.atomic);
  return result;
}

Napi::Object perf_outcome(Napi::Env env, const perf::Outcome& outcome) {
  auto result = Napi::Object::New(env);
  result.Set("error", outcome.error);
  result.Set("messages", ns(env, outcome.messages));
  result.Set("received", ns(env, outcome.received));
  result.Set("elapsedNs", ns(env, outcome.elapsed_ns));
  result.Set("userNs", ns(env, outcome.cpu.user_ns));
  result.Set("systemNs", ns(env, outcome.cpu.system_ns));
  auto latency = Napi::Uint32Array::New(env, outcome.latency_ns.size());
  if (!outcome.latency_ns.empty())
    std::memcpy(latency.Data(), outcome.latency_ns.data(), outcome.latency_ns.size() * sizeof(std::uint32_t));
  result.Set("latencyNs", latency);
  result.Set("peakNs", outcome.peak_ns);
  result.Set("corrupt", ns(env, outcome.corrupt));
  result.Set("firstCorrupt", outcome.first_corrupt);
  return result;
}

}  // namespace rdma_rpc::binding
