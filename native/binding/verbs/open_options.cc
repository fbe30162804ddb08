// See open_options.h.
#include "binding/verbs/open_options.h"

#include "binding/objects/engine_options.h"
#include "binding/objects/given.h"

namespace rdma_rpc::binding {

OpenOptions read_open_options(const Napi::Object& given) {
  OpenOptions options;
  options.fabric = given.Get("fabric").As<Napi::String>().Utf8Value();
  if (given.Get("seed").IsNumber()) options.seed = u64(given, "seed");
  if (given.Get("lossPpm").IsNumber()) options.loss_ppm = u32(given, "lossPpm");
  if (given.Get("duplicatePpm").IsNumber()) options.duplicate_ppm = u32(given, "duplicatePpm");
  if (given.Get("host").IsString()) options.host = given.Get("host").As<Napi::String>().Utf8Value();
  options.handed_over = given.Get("handedOver").ToBoolean();
  options.verbs = read_verbs(given.Get("verbs"));
  options.verbs.other_listeners = true;
  options.verbs.on_demand = given.Get("onDemand").ToBoolean();
  return options;
}

}  // namespace rdma_rpc::binding
