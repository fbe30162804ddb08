// Defines properties of the context object that JS reads for each message or each turn. On the JS thread.
#pragma once

#include <napi.h>

#include <type_traits>

namespace rdma_rpc::binding {

/// Defines a property like one in an object literal. When more than a dozen are set one after the other, V8
/// stores the object as a hash table, and reading a property from JS then needs a call.
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

/// Defines a method of this object only. A method of the class would have to find its owner in a private
/// property of `this`, through a call of V8 that costs as much as everything else in entering native code.
/// `owner` must live as long as `self`, which the function keeps alive.
template <auto method, class Owner>
void give_method(const Napi::Object& self, const char* name, Owner* owner) {
  const auto function = Napi::Function::New<&call_method<method, Owner>>(self.Env(), name, owner);
  function.Set("context", self);
  give(self, name, function);
}

}  // namespace rdma_rpc::binding
