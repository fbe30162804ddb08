// Defines the symbols that the core looks up in this plug-in; see verbs_loader.h and verbs_inspection.h.
#include "fabric/verbs/inspect/details.h"
#include "fabric/verbs/inspect/watch.h"
#include "fabric/verbs/open.h"

using rdma_rpc::fabric::VerbsOptions;
using rdma_rpc::fabric::VerbsReport;
using rdma_rpc::fabric::VerbsSearch;

extern "C" {

__attribute__((visibility("default"))) rdma_rpc::fabric::Device* rdma_rpc_open_verbs_5(
    const VerbsOptions& options, std::string* error) {
  return rdma_rpc::fabric::verbs::open_device(options, error).release();
}

__attribute__((visibility("default"))) void rdma_rpc_list_verbs_5(VerbsReport* report,
                                                                  const VerbsSearch& search) {
  *report = rdma_rpc::fabric::verbs::list_devices(search);
}

__attribute__((visibility("default"))) void rdma_rpc_describe_verbs_1(
    std::vector<rdma_rpc::fabric::VerbsDetails>* details) {
  *details = rdma_rpc::fabric::verbs::describe_devices();
}

__attribute__((visibility("default"))) rdma_rpc::fabric::VerbsWatch* rdma_rpc_watch_verbs_1(
    const std::string& device, std::string* error) {
  return rdma_rpc::fabric::verbs::watch_device(device, error).release();
}
}
