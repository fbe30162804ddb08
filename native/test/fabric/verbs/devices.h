// Finds the devices for tests of real RDMA: those in RDMA_RPC_VERBS_DEVICES (two names with a comma), or the
// first device for both sides.
#pragma once

#include <cstdlib>
#include <string>

#include "fabric/verbs_loader.h"

namespace rdma_rpc::fabric::test {

/// The index of the client is 0, and that of the server is 1.
inline VerbsOptions test_options(std::size_t which, VerbsConnect connect) {
  VerbsOptions options;
  options.connect = connect;
  // The end of a peer shows after 0.4 s. A smaller number would be too small for 8 MiB over soft-RoCE on a
  // busy machine.
  options.retry_count = 5;
  options.ack_timeout = 14;
  const char* given = std::getenv("RDMA_RPC_VERBS_DEVICES");
  const std::string names = given == nullptr ? "" : given;
  const std::size_t comma = names.find(',');
  options.device =
      which == 0 || comma == std::string::npos ? names.substr(0, comma) : names.substr(comma + 1);
  return options;
}

/// Returns why the two devices cannot be connected in this way, or "".
inline std::string why_not_run(VerbsConnect connect) {
  std::string error;
  for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
    if (open_verbs_device(test_options(which, connect), &error) == nullptr) return error;
  }
  return "";
}

}  // namespace rdma_rpc::fabric::test
