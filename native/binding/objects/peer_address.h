// Converts addresses of queue pairs between JS and native code: the address of a peer for connectSession(),
// and our own. This code runs on the JS thread.
#pragma once

#include <napi.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::binding {

/// Reads the address of the peer from the bytes in info[1]. When info[2] and info[3] are given, the peer is
/// reached at this host and port. When only info[2] is given, the peer is reached at the unix socket with
/// this path. Returns an empty address and `why` on failure.
std::vector<std::byte> read_peer_address(const Napi::CallbackInfo& info, std::string* why);

/// Returns our address, for the peer.
Napi::Uint8Array own_address(Napi::Env env, const std::vector<std::byte>& address);

/// Reads the first bytes of this side and of the peer from info[4]. Returns std::nullopt when they are not
/// given. Sets `why` when their length is wrong.
std::optional<fabric::FirstWords> read_first_words(const Napi::CallbackInfo& info, std::string* why);

}  // namespace rdma_rpc::binding
