// See opening.h.
#include "perf/program/opening.h"

#include "fabric/shm/shm.h"
#include "fabric/tcp/tcp.h"
#include "fabric/verbs_loader.h"
#include "perf/bare_endpoint.h"
#include "perf/fabric_endpoint.h"

namespace rdma_rpc::perf {
namespace {

/// Requests to a peer without a posted receive are retried without limit, as in perftest.
constexpr int kRnrRetryEndless = 7;

fabric::VerbsOptions verbs_options(const Words& asked) {
  fabric::VerbsOptions options;
  options.device = asked.text("device");
  options.address = asked.text("host");
  if (asked.has("gidIndex")) options.gid_index = static_cast<int>(asked.number("gidIndex"));
  options.rnr_retry = kRnrRetryEndless;
  if (asked.is("manager")) options.connect = fabric::VerbsConnect::cm;
  return options;
}

std::shared_ptr<fabric::Device> open_device(const Words& asked, std::string* error) {
  const std::string name = asked.text("fabric");
  if (name == "shm") return fabric::open_shm_device({}, error);
  if (name == "tcp") return fabric::open_tcp_device({.host = asked.text("host")}, error);
  if (name == "verbs") return fabric::open_verbs_device(verbs_options(asked), error);
  *error = "unknown fabric '" + name + "' (known: shm, tcp, verbs, bare)";
  return nullptr;
}

}  // namespace

std::unique_ptr<Endpoint> open_endpoint(const Words& asked, const EndpointOptions& needs,
                                        std::string* error) {
  if (asked.text("fabric") == "bare") return make_bare_endpoint(verbs_options(asked), needs, error);
  std::shared_ptr<fabric::Device> device = open_device(asked, error);
  return device == nullptr ? nullptr : make_fabric_endpoint(std::move(device), needs, error);
}

}  // namespace rdma_rpc::perf
