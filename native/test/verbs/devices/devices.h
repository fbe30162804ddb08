// Finds the RDMA devices of these tests: those in RDMA_RPC_VERBS_DEVICES (two names with a comma), or the
// first device for both ends. The file also describes the virtual machine of test/rdma-vm, in which the wire
// between the devices can be disturbed. All tests in native/test/verbs use this file.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "fabric/verbs_loader.h"

namespace rdma_rpc::session::test {

inline constexpr std::size_t kClientEnd = 0, kServerEnd = 1;

/// Returns the options of the device of end `end`. With `retry_count` 6, a machine that stands still for 0.4
/// s loses no session.
fabric::VerbsOptions options_of(std::size_t end, std::uint8_t retry_count = 6);
/// Returns true for RDMA_RPC_TEST_FABRIC=tcp, when each end is a device of the tcp fabric. The test program
/// tcp_faults_test uses this for properties of the session that hold on every fabric.
bool over_tcp();
/// Fails the test when the device is missing.
std::shared_ptr<fabric::Device> open_device(std::size_t end, std::uint8_t retry_count = 6);
/// Returns the reason why these tests cannot run here, or "" when they can.
std::string why_no_devices();

/// Returns "rxe" or "siw" in the guest, where RDMA_VM has that value, and "" elsewhere.
std::string guest_link();
/// Returns the version of the guest's Linux: {6, 1} for "6.1.0-39-amd64".
std::pair<int, int> guest_linux();
/// Runs a shell command, and fails the test when the command fails. Returns the output of the command.
std::string shell(const std::string& command);

}  // namespace rdma_rpc::session::test
