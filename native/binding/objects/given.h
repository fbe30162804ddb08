// Reads numbers from an object of JS: options of contexts and sessions, which TypeScript has checked. On the
// JS thread.
#pragma once

#include <napi.h>

#include <cstdint>

namespace rdma_rpc::binding {

inline std::uint32_t u32(const Napi::Object& given, const char* name) {
  return given.Get(name).ToNumber().Uint32Value();
}
inline std::uint64_t u64(const Napi::Object& given, const char* name) {
  return static_cast<std::uint64_t>(given.Get(name).ToNumber().Int64Value());
}

}  // namespace rdma_rpc::binding
