// See details.h.
#include "fabric/verbs/inspect/details.h"

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstdio>

#include "fabric/verbs/device_list.h"
#include "fabric/verbs/inspect/port_details.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// Returns a GUID in the form of ibv_devinfo, such as 0002:c903:0010:24d5.
std::string guid_text(__be64 guid) {
  const std::uint64_t value = be64toh(guid);
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%04x:%04x:%04x", static_cast<unsigned>(value >> 48 & 0xffff),
                static_cast<unsigned>(value >> 32 & 0xffff), static_cast<unsigned>(value >> 16 & 0xffff),
                static_cast<unsigned>(value & 0xffff));
  return text;
}

const char* atomic_text(ibv_atomic_cap capability) {
  switch (capability) {
    case IBV_ATOMIC_NONE:
      return "ATOMIC_NONE";
    case IBV_ATOMIC_HCA:
      return "ATOMIC_HCA";
    case IBV_ATOMIC_GLOB:
      return "ATOMIC_GLOB";
    default:
      return "unknown";
  }
}

const char* node_text(ibv_node_type type) {
  switch (type) {
    case IBV_NODE_CA:
      return "channel adapter";
    case IBV_NODE_RNIC:
      return "iWARP NIC";
    case IBV_NODE_SWITCH:
      return "switch";
    case IBV_NODE_ROUTER:
      return "router";
    default:
      return "of its own kind";
  }
}

/// One of the counts and limits of ibv_device_attr that are plain numbers.
struct Limit {
  const char* name;
  int ibv_device_attr::*value;
};
constexpr Limit kLimits[] = {
    {"max_qp", &ibv_device_attr::max_qp},
    {"max_qp_wr", &ibv_device_attr::max_qp_wr},
    {"max_sge", &ibv_device_attr::max_sge},
    {"max_sge_rd", &ibv_device_attr::max_sge_rd},
    {"max_cq", &ibv_device_attr::max_cq},
    {"max_cqe", &ibv_device_attr::max_cqe},
    {"max_mr", &ibv_device_attr::max_mr},
    {"max_pd", &ibv_device_attr::max_pd},
    {"max_qp_rd_atom", &ibv_device_attr::max_qp_rd_atom},
    {"max_ee_rd_atom", &ibv_device_attr::max_ee_rd_atom},
    {"max_res_rd_atom", &ibv_device_attr::max_res_rd_atom},
    {"max_qp_init_rd_atom", &ibv_device_attr::max_qp_init_rd_atom},
    {"max_ee_init_rd_atom", &ibv_device_attr::max_ee_init_rd_atom},
    {"max_ee", &ibv_device_attr::max_ee},
    {"max_rdd", &ibv_device_attr::max_rdd},
    {"max_mw", &ibv_device_attr::max_mw},
    {"max_raw_ipv6_qp", &ibv_device_attr::max_raw_ipv6_qp},
    {"max_raw_ethy_qp", &ibv_device_attr::max_raw_ethy_qp},
    {"max_mcast_grp", &ibv_device_attr::max_mcast_grp},
    {"max_mcast_qp_attach", &ibv_device_attr::max_mcast_qp_attach},
    {"max_total_mcast_qp_attach", &ibv_device_attr::max_total_mcast_qp_attach},
    {"max_ah", &ibv_device_attr::max_ah},
    {"max_fmr", &ibv_device_attr::max_fmr},
    {"max_map_per_fmr", &ibv_device_attr::max_map_per_fmr},
    {"max_srq", &ibv_device_attr::max_srq},
    {"max_srq_wr", &ibv_device_attr::max_srq_wr},
    {"max_srq_sge", &ibv_device_attr::max_srq_sge},
};

struct Flag {
  unsigned bit;
  const char* name;
};
constexpr Flag kFlags[] = {
    {IBV_DEVICE_RESIZE_MAX_WR, "RESIZE_MAX_WR"},
    {IBV_DEVICE_BAD_PKEY_CNTR, "BAD_PKEY_CNTR"},
    {IBV_DEVICE_BAD_QKEY_CNTR, "BAD_QKEY_CNTR"},
    {IBV_DEVICE_RAW_MULTI, "RAW_MULTI"},
    {IBV_DEVICE_AUTO_PATH_MIG, "AUTO_PATH_MIG"},
    {IBV_DEVICE_CHANGE_PHY_PORT, "CHANGE_PHY_PORT"},
    {IBV_DEVICE_UD_AV_PORT_ENFORCE, "UD_AV_PORT_ENFORCE"},
    {IBV_DEVICE_CURR_QP_STATE_MOD, "CURR_QP_STATE_MOD"},
    {IBV_DEVICE_SHUTDOWN_PORT, "SHUTDOWN_PORT"},
    {IBV_DEVICE_INIT_TYPE, "INIT_TYPE"},
    {IBV_DEVICE_PORT_ACTIVE_EVENT, "PORT_ACTIVE_EVENT"},
    {IBV_DEVICE_SYS_IMAGE_GUID, "SYS_IMAGE_GUID"},
    {IBV_DEVICE_RC_RNR_NAK_GEN, "RC_RNR_NAK_GEN"},
    {IBV_DEVICE_SRQ_RESIZE, "SRQ_RESIZE"},
    {IBV_DEVICE_N_NOTIFY_CQ, "N_NOTIFY_CQ"},
    {IBV_DEVICE_MEM_WINDOW, "MEM_WINDOW"},
    {IBV_DEVICE_UD_IP_CSUM, "UD_IP_CSUM"},
    {IBV_DEVICE_XRC, "XRC"},
    {IBV_DEVICE_MEM_MGT_EXTENSIONS, "MEM_MGT_EXTENSIONS"},
    {IBV_DEVICE_MEM_WINDOW_TYPE_2A, "MEM_WINDOW_TYPE_2A"},
    {IBV_DEVICE_MEM_WINDOW_TYPE_2B, "MEM_WINDOW_TYPE_2B"},
    {IBV_DEVICE_RC_IP_CSUM, "RC_IP_CSUM"},
    {IBV_DEVICE_RAW_IP_CSUM, "RAW_IP_CSUM"},
    {IBV_DEVICE_MANAGED_FLOW_STEERING, "MANAGED_FLOW_STEERING"},
};

/// Adds the attributes of on-demand paging and clocks, which only the extended query returns.
void add_extended(ibv_context* device, std::vector<VerbsAttribute>* attributes) {
  ibv_device_attr_ex attr{};
  if (ibv_query_device_ex(device, nullptr, &attr) != 0) return;
  attributes->insert(attributes->end(), {{"odp_general_caps", hex(attr.odp_caps.general_caps)},
                                         {"rc_odp_caps", hex(attr.odp_caps.per_transport_caps.rc_odp_caps)},
                                         {"uc_odp_caps", hex(attr.odp_caps.per_transport_caps.uc_odp_caps)},
                                         {"ud_odp_caps", hex(attr.odp_caps.per_transport_caps.ud_odp_caps)},
                                         {"completion_timestamp_mask", hex(attr.completion_timestamp_mask)},
                                         {"hca_core_clock_khz", std::to_string(attr.hca_core_clock)},
                                         {"device_cap_flags_ex", hex(attr.device_cap_flags_ex)},
                                         {"max_tso", std::to_string(attr.tso_caps.max_tso)},
                                         {"max_wq_type_rq", std::to_string(attr.max_wq_type_rq)},
                                         {"max_dm_size", std::to_string(attr.max_dm_size)}});
}

void describe(ibv_context* context, VerbsDetails* details) {
  ibv_device_attr attr{};
  if (ibv_query_device(context, &attr) != 0) {
    details->why_not = details->name + " does not tell its attributes";
    return;
  }
  details->attributes = {{"node_type", node_text(context->device->node_type)},
                         {"fw_ver", attr.fw_ver},
                         {"node_guid", guid_text(attr.node_guid)},
                         {"sys_image_guid", guid_text(attr.sys_image_guid)},
                         {"vendor_id", hex(attr.vendor_id)},
                         {"vendor_part_id", std::to_string(attr.vendor_part_id)},
                         {"hw_ver", hex(attr.hw_ver)},
                         {"phys_port_cnt", std::to_string(attr.phys_port_cnt)},
                         {"num_comp_vectors", std::to_string(context->num_comp_vectors)},
                         {"max_mr_size", hex(attr.max_mr_size)},
                         {"page_size_cap", hex(attr.page_size_cap)}};
  for (const Limit& limit : kLimits) {
    details->attributes.push_back({limit.name, std::to_string(attr.*limit.value)});
  }
  details->attributes.insert(details->attributes.end(),
                             {{"atomic_cap", atomic_text(attr.atomic_cap)},
                              {"max_pkeys", std::to_string(attr.max_pkeys)},
                              {"local_ca_ack_delay", std::to_string(attr.local_ca_ack_delay)},
                              {"device_cap_flags", hex(attr.device_cap_flags)}});
  for (const Flag& flag : kFlags) {
    if ((attr.device_cap_flags & flag.bit) != 0) details->flags.emplace_back(flag.name);
  }
  add_extended(context, &details->attributes);
  for (std::uint8_t number = 1; number <= attr.phys_port_cnt; ++number) {
    details->ports.push_back(describe_port(context, number));
  }
}

}  // namespace

std::vector<VerbsDetails> describe_devices() {
  const DeviceList list;
  std::vector<VerbsDetails> all;
  for (ibv_device* device : list.devices()) {
    VerbsDetails& details = all.emplace_back();
    details.name = ibv_get_device_name(device);
    const ContextPtr context = open_context(device, &details.why_not);
    if (context != nullptr) describe(context.get(), &details);
  }
  return all;
}

}  // namespace rdma_rpc::fabric::verbs
