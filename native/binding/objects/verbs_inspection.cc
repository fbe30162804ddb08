// See verbs_inspection.h.
#include "binding/objects/verbs_inspection.h"

#include <memory>
#include <vector>

#include "fabric/verbs_inspection.h"

namespace rdma_rpc::binding {
namespace {

Napi::Object attributes(Napi::Env env, const std::vector<fabric::VerbsAttribute>& given) {
  auto result = Napi::Object::New(env);
  for (const fabric::VerbsAttribute& each : given) result.Set(each.name, each.value);
  return result;
}

Napi::Object port(Napi::Env env, const fabric::VerbsPortDetails& given) {
  auto result = Napi::Object::New(env);
  result.Set("number", given.number);
  result.Set("attributes", attributes(env, given.attributes));
  result.Set("pkeys", attributes(env, given.pkeys));
  return result;
}

Napi::Object device(Napi::Env env, const fabric::VerbsDetails& given) {
  auto result = Napi::Object::New(env);
  result.Set("name", given.name);
  result.Set("whyNot", given.why_not);
  result.Set("attributes", attributes(env, given.attributes));
  auto flags = Napi::Array::New(env, given.flags.size());
  for (std::uint32_t i = 0; i < given.flags.size(); ++i) flags.Set(i, given.flags[i]);
  result.Set("flags", flags);
  auto ports = Napi::Array::New(env, given.ports.size());
  for (std::uint32_t i = 0; i < given.ports.size(); ++i) ports.Set(i, port(env, given.ports[i]));
  result.Set("ports", ports);
  return result;
}

Napi::Value verbs_details(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::vector<fabric::VerbsDetails> details = fabric::describe_verbs_devices();
  auto result = Napi::Array::New(env, details.size());
  for (std::uint32_t i = 0; i < details.size(); ++i) result.Set(i, device(env, details[i]));
  return result;
}

/// Throws a JS error, with the reason, when the device cannot be watched.
Napi::Value verbs_watch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::string device = info[0].ToString().Utf8Value();
  std::string error;
  // The watch is shared, because the functions below are copied. The object closes the device when the last
  // of them is collected.
  auto watch =
      std::make_shared<std::unique_ptr<fabric::VerbsWatch>>(fabric::watch_verbs_device(device, &error));
  if (*watch == nullptr) {
    Napi::Error::New(env, "rdma-rpc: " + error).ThrowAsJavaScriptException();
    return {};
  }
  auto result = Napi::Object::New(env);
  result.Set("take", Napi::Function::New(env, [watch](const Napi::CallbackInfo& info) -> Napi::Value {
               auto events = Napi::Array::New(info.Env());
               fabric::VerbsEvent event;
               while (*watch != nullptr && (*watch)->take(&event)) {
                 auto object = Napi::Object::New(info.Env());
                 object.Set("name", event.name);
                 object.Set("text", event.text);
                 object.Set("port", event.port);
                 events.Set(events.Length(), object);
               }
               return events;
             }));
  result.Set("close", Napi::Function::New(env, [watch](const Napi::CallbackInfo&) { watch->reset(); }));
  return result;
}

}  // namespace

void define_verbs_inspection(Napi::Env env, Napi::Object exports) {
  exports.Set("verbsDetails", Napi::Function::New(env, verbs_details));
  exports.Set("verbsWatch", Napi::Function::New(env, verbs_watch));
}

}  // namespace rdma_rpc::binding
