// Why a call of this layer was refused. Returned by the objects of this folder to the binding, which throws
// it as an error of JS; on the JS thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace rdma_rpc::checked {

/// The values are known to runtime/verbs/errors.ts.
enum class Cause : std::uint8_t {
  none,         ///< the call was carried out
  range,        ///< an argument is outside its range
  closed,       ///< an object was closed, or never existed
  state,        ///< the queue pair is not in a state that allows the call
  full,         ///< a queue has no room
  unsupported,  ///< the device cannot do this
  refused,      ///< the device, the system or the peer refused
};

struct Refusal {
  Cause cause = Cause::none;
  std::string text = {};
  bool none() const { return cause == Cause::none; }
};

inline Refusal refuse(Cause cause, std::string text) { return {cause, std::move(text)}; }

}  // namespace rdma_rpc::checked
