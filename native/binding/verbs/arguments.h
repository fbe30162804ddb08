// Converts arguments and results of the calls of an `rdma-rpc/verbs` device: numbers, typed arrays, refusals.
// This code runs on the JS thread.
#pragma once

#include <napi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "checked/refusal.h"
#include "fabric/fabric.h"

namespace rdma_rpc::binding {

inline std::uint32_t number(const Napi::CallbackInfo& info, std::size_t index) {
  return info[index].As<Napi::Number>().Uint32Value();
}

/// Returns undefined for no refusal, otherwise the refusal as an object.
inline Napi::Value told(Napi::Env env, const checked::Refusal& refusal) {
  if (refusal.none()) return {};
  auto result = Napi::Object::New(env);
  result.Set("cause", static_cast<std::uint32_t>(refusal.cause));
  result.Set("text", refusal.text);
  return result;
}

inline checked::Refusal closed() { return checked::refuse(checked::Cause::closed, "it was closed"); }

/// Returns the rows of a Float64Array. When the array has been detached, the result has fewer than `count`
/// rows.
inline std::span<double> rows_of(const Napi::Value& value) {
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

/// Returns the bytes of a Uint8Array, which may be a view of a SharedArrayBuffer.
inline std::span<std::byte> bytes_of(const Napi::Value& value) {
  std::size_t length = 0;
  void* raw = nullptr;
  if (napi_get_typedarray_info(value.Env(), value, nullptr, &length, &raw, nullptr, nullptr) != napi_ok)
    return {};
  return {static_cast<std::byte*>(raw), length};
}

inline fabric::Gid gid_of(const Napi::Value& value) {
  fabric::Gid gid{};
  const std::span<std::byte> bytes = bytes_of(value);
  std::copy_n(bytes.begin(), std::min(bytes.size(), gid.size()), gid.begin());
  return gid;
}
inline std::shared_ptr<const void> kept(const Napi::Value& value) {
  const napi_env env = value.Env();
  napi_ref reference = nullptr;
  if (napi_create_reference(env, value, 1, &reference) != napi_ok) return nullptr;
  return {reference, [env](const void* ended) {
            napi_delete_reference(env, static_cast<napi_ref>(const_cast<void*>(ended)));
          }};
}

}  // namespace rdma_rpc::binding
