// See port_details.h.
#include "fabric/verbs/inspect/port_details.h"

#include <endian.h>

#include <cstdio>
#include <iterator>

namespace rdma_rpc::fabric::verbs {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

namespace {

std::string mtu_text(ibv_mtu mtu) { return std::to_string(128u << mtu); }

/// Returns the width for a code of the InfiniBand specification, section 14.2.5.6 (PortInfo).
const char* width_text(std::uint8_t width) {
  switch (width) {
    case 1:
      return "1X";
    case 2:
      return "4X";
    case 4:
      return "8X";
    case 8:
      return "12X";
    case 16:
      return "2X";
    default:
      return "unknown";
  }
}

/// Returns the speed of one physical lane of the link.
const char* speed_text(std::uint8_t speed) {
  switch (speed) {
    case 1:
      return "2.5 Gbps (SDR)";
    case 2:
      return "5 Gbps (DDR)";
    case 4:
      return "10 Gbps (QDR)";
    case 8:
      return "10 Gbps (FDR10)";
    case 16:
      return "14 Gbps (FDR)";
    case 32:
      return "25 Gbps (EDR)";
    case 64:
      return "50 Gbps (HDR)";
    case 128:
      return "100 Gbps (NDR)";
    default:
      return "unknown";
  }
}

const char* state_text(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
    default:
      return "NOP";
  }
}

const char* physical_text(std::uint8_t state) {
  constexpr const char* kTexts[] = {
      "unknown", "SLEEP", "POLLING", "DISABLED", "TRAINING", "LINK_UP", "LINK_ERROR_RECOVERY", "PHY_TEST"};
  return state < std::size(kTexts) ? kTexts[state] : "unknown";
}

}  // namespace

VerbsPortDetails describe_port(ibv_context* device, std::uint8_t number) {
  VerbsPortDetails port;
  port.number = number;
  ibv_port_attr attr{};
  if (ibv_query_port(device, number, &attr) != 0) return port;
  port.attributes = {
      {"state", state_text(attr.state)},
      {"phys_state", physical_text(attr.phys_state)},
      {"link_layer", attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand"},
      {"max_mtu", mtu_text(attr.max_mtu)},
      {"active_mtu", mtu_text(attr.active_mtu)},
      {"active_width", width_text(attr.active_width)},
      {"active_speed", speed_text(attr.active_speed)},
      {"port_lid", std::to_string(attr.lid)},
      {"port_lmc", std::to_string(attr.lmc)},
      {"sm_lid", std::to_string(attr.sm_lid)},
      {"sm_sl", std::to_string(attr.sm_sl)},
      {"max_msg_sz", std::to_string(attr.max_msg_sz)},
      {"port_cap_flags", hex(attr.port_cap_flags)},
      {"port_cap_flags2", hex(attr.port_cap_flags2)},
      {"max_vl_num", std::to_string(attr.max_vl_num)},
      {"bad_pkey_cntr", std::to_string(attr.bad_pkey_cntr)},
      {"qkey_viol_cntr", std::to_string(attr.qkey_viol_cntr)},
      {"pkey_tbl_len", std::to_string(attr.pkey_tbl_len)},
      {"gid_tbl_len", std::to_string(attr.gid_tbl_len)},
      {"subnet_timeout", std::to_string(attr.subnet_timeout)},
      {"init_type_reply", std::to_string(attr.init_type_reply)},
  };
  for (int index = 0; index < attr.pkey_tbl_len; ++index) {
    __be16 pkey = 0;
    // The low 15 bits are the partition; an entry without them is empty.
    if (ibv_query_pkey(device, number, index, &pkey) != 0 || (be16toh(pkey) & 0x7fff) == 0) continue;
    port.pkeys.push_back({std::to_string(index), hex(be16toh(pkey))});
  }
  return port;
}

}  // namespace rdma_rpc::fabric::verbs
