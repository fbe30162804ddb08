// The one symbol that the core looks up in this plug-in; see verbs_loader.h.
#include "fabric/verbs/device.h"

extern "C" __attribute__((visibility("default"))) rdma_rpc::fabric::Device* rdma_rpc_open_verbs_1(
    const rdma_rpc::fabric::VerbsOptions& options, std::string* error) {
  return rdma_rpc::fabric::verbs::Device::open(options, error).release();
}
