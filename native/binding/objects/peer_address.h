// The address of a queue pair as JS passes it on: a peer's, for connectSession(), and our own. On the JS
// thread.
#pragma once

#include <napi.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::binding {

/// From the bytes in info[1]; with info[2] and info[3], host and port, or with info[2] alone, the path of a
/// unix socket, as it is dialled there. Empty, and why, when it cannot be.
std::vector<std::byte> read_peer_address(const Napi::CallbackInfo& info, std::string* why);

/// For the peer.
Napi::Uint8Array own_address(Napi::Env env, const std::vector<std::byte>& address);

/// From the bytes in info[4], own and peer's; none without them. `why`: there are too few or too many.
std::optional<fabric::FirstWords> read_first_words(const Napi::CallbackInfo& info, std::string* why);

}  // namespace rdma_rpc::binding
