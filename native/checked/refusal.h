// A Refusal is the reason why a call of this layer was refused. The objects of this folder return it to the
// binding, which throws it as an error in JS, on the JS thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace rdma_rpc::checked {

/// runtime/verbs/errors.ts uses the same values.
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

/// Refuses a batch because a queue has less room than the batch needs. `option` names the option that set the
/// depth of the queue.
inline Refusal no_room(const char* queue, const char* option, std::uint32_t room, std::uint32_t depth,
                       std::size_t count) {
  return refuse(Cause::full, std::string("the ") + queue + " queue has room for " + std::to_string(room) +
                                 " of these " + std::to_string(count) + " requests (" + option + " is " +
                                 std::to_string(depth) + "): poll the completion queue first");
}

inline Refusal not_taken(std::size_t taken, std::size_t count) {
  return refuse(Cause::refused, "the device took " + std::to_string(taken) + " of " + std::to_string(count) +
                                    " requests; the others were not posted");
}

}  // namespace rdma_rpc::checked
