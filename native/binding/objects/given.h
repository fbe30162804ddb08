// Reads numbers from a JS object that contains options of contexts or sessions. TypeScript has checked them.
// This code runs on the JS thread.
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
