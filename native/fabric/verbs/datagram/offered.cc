// See offered.h.
#include "fabric/verbs/datagram/offered.h"

#include <cerrno>

#include "fabric/verbs/probe.h"
#include "fabric/verbs/refusal.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// Returns "", or why the device makes no queue pair of this type.
std::string why_no(QpType type, ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr init = reliable(cq, 16, 16, 1, 0);
  init.qp_type = type_on_device(type);
  errno = 0;
  if (QpPtr(ibv_create_qp(pd, &init)) != nullptr) return "";
  return errno == 0 ? "its driver refuses them without a reason"
                    : "its driver refuses them: " + why_refused(errno);
}

std::string why_no_multicast(const Port& port, const ibv_device_attr& attributes) {
  if (port.address.link_layer != IBV_LINK_LAYER_ETHERNET)
    return "on InfiniBand the subnet manager makes the groups, and this package does not ask it";
  return attributes.max_mcast_grp > 0 ? "" : "the device takes part in no group (max_mcast_grp is 0)";
}

}  // namespace

ibv_qp_type type_on_device(QpType type) {
  switch (type) {
    case QpType::uc:
      return IBV_QPT_UC;
    case QpType::ud:
      return IBV_QPT_UD;
    case QpType::rc:
      break;
  }
  return IBV_QPT_RC;
}

void offer_unreliable(ibv_pd* pd, const Port& port, const ibv_device_attr& attributes, Capabilities* can) {
  if (pd->context->device->transport_type == IBV_TRANSPORT_IWARP) {
    for (const Feature feature : {Feature::uc, Feature::ud, Feature::multicast})
      can->reasons[feature] = "iWARP has only reliable connections";
    return;
  }
  const CqPtr cq(ibv_create_cq(pd->context, 16, nullptr, nullptr, 0));
  const auto offer = [can](Feature feature, const std::string& why, bool* has) {
    *has = why.empty();
    if (!why.empty()) can->reasons[feature] = why;
  };
  offer(Feature::uc, cq == nullptr ? "no completion queue was left to try" : why_no(QpType::uc, pd, cq.get()),
        &can->uc);
  offer(Feature::ud, cq == nullptr ? "no completion queue was left to try" : why_no(QpType::ud, pd, cq.get()),
        &can->ud);
  offer(Feature::multicast, can->ud ? why_no_multicast(port, attributes) : "it has no UD queue pairs",
        &can->multicast);
  constexpr std::uint32_t kSmallestMtu = 128;  // before the first value of enum ibv_mtu
  if (can->ud) can->max_datagram_bytes = kSmallestMtu << port.address.mtu;
}

}  // namespace rdma_rpc::fabric::verbs
