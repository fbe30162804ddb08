// The symbols that the core looks up in this plug-in; see verbs_loader.h.
#include "fabric/verbs/open.h"

using rdma_rpc::fabric::VerbsOptions;
using rdma_rpc::fabric::VerbsReport;

extern "C" {

__attribute__((visibility("default"))) rdma_rpc::fabric::Device* rdma_rpc_open_verbs_2(
    const VerbsOptions& options, std::string* error) {
  return rdma_rpc::fabric::verbs::open_device(options, error).release();
}

__attribute__((visibility("default"))) void rdma_rpc_list_verbs_2(VerbsReport* report,
                                                                  std::size_t needed_bytes) {
  *report = rdma_rpc::fabric::verbs::list_devices(needed_bytes);
}
}
