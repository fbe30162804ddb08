// Defines properties of the context object that JS reads for each message or each turn. This code runs on the
// JS thread.
#pragma once

#include <napi.h>

#include <type_traits>

namespace rdma_rpc::binding {

/// Defines a property like one in an object literal. When a dozen properties are set one by one, V8 stores
/// the object as a hash table, and JS then needs a call for each read of a property.
template <class Value>
void give(const Napi::Object& self, const char* name, Value value) {
  self.DefineProperty(
      Napi::PropertyDescriptor::Value(name, Napi::Value::From(self.Env(), value), napi_default_jsproperty));
}

/// Calls `method` of the `Owner` that the function was created with.
template <auto method, class Owner>
Napi::Value call_method(const Napi::CallbackInfo& info) {
  auto* owner = static_cast<Owner*>(info.Data());
  if constexpr (std::is_void_v<decltype((owner->*method)(info))>) {
    (owner->*method)(info);
    return {};
  } else {
    return (owner->*method)(info);
  }
}

/// Defines a method of this object alone. A method of the class would find its owner through a private
/// property of `this`. Reading that property is a call of V8 that costs as much as the rest of entering
/// native code. `owner` must live as long as `self`, which the function keeps alive.
template <auto method, class Owner>
void give_method(const Napi::Object& self, const char* name, Owner* owner) {
  const auto function = Napi::Function::New<&call_method<method, Owner>>(self.Env(), name, owner);
  function.Set("context", self);
  give(self, name, function);
}

}  // namespace rdma_rpc::binding
