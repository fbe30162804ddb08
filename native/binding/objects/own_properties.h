// Properties of an object that JS reads for each message or each turn: the context's. On the JS thread.
#pragma once

#include <napi.h>

#include <type_traits>

namespace rdma_rpc::binding {

/// A property as an object literal would have it. With more than a dozen that are set one after the other V8
/// keeps the object as a hash table, and all JS that reads one of them has to call for it.
template <class Value>
void give(const Napi::Object& self, const char* name, Value value) {
  self.DefineProperty(
      Napi::PropertyDescriptor::Value(name, Napi::Value::From(self.Env(), value), napi_default_jsproperty));
}

/// `method` of `Owner` as a function that knows its owner.
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

/// A method of this object alone. One of its class has to look for its owner in a private property of `this`,
/// by a call of V8's that costs as much as the rest of going into native code. `owner` lives as long as
/// `self`, which whoever has the function keeps.
template <auto method, class Owner>
void give_method(const Napi::Object& self, const char* name, Owner* owner) {
  const auto function = Napi::Function::New<&call_method<method, Owner>>(self.Env(), name, owner);
  function.Set("context", self);
  give(self, name, function);
}

}  // namespace rdma_rpc::binding
