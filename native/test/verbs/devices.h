// The RDMA devices of these tests: those in RDMA_RPC_VERBS_DEVICES (two names with a comma), or the first one
// for both ends. And the guest of test/rdma-vm, where the wire between them can be disturbed. Called by
// everything in this folder.
#pragma once

#include <memory>
#include <string>

#include "fabric/verbs_loader.h"

namespace rdma_rpc::session::test {

inline constexpr std::size_t kClientEnd = 0, kServerEnd = 1;

/// Of the device of that end. `retry_count` 2: a peer that is gone shows after 0.2 s instead of 0.5 s.
fabric::VerbsOptions options_of(std::size_t end, std::uint8_t retry_count = 2);
/// Fails the test when there is none.
std::shared_ptr<fabric::Device> open_device(std::size_t end, std::uint8_t retry_count = 2);
/// Why these tests cannot run here; empty when they can.
std::string why_no_devices();

/// "rxe" or "siw" in the guest, where RDMA_VM says so; empty elsewhere.
std::string guest_link();
/// Runs a command of the shell and fails the test when it fails. What it prints.
std::string shell(const std::string& command);

}  // namespace rdma_rpc::session::test
