// Implements the list of features of a device, the error texts for features that it lacks, and the checks of
// a registration that all devices share. This code may run on any thread.
#include "fabric/capabilities.h"

#include "fabric/memory.h"

namespace rdma_rpc::fabric {

const char* to_string(Feature feature) {
  switch (feature) {
    case Feature::send_with_imm:
      return "SEND with immediate";
    case Feature::write_with_imm:
      return "RDMA WRITE with immediate";
    case Feature::windows:
      return "memory windows of type 2 and SEND with invalidate";
    case Feature::atomics:
      return "atomics (compare-and-swap, fetch-and-add)";
    case Feature::solicited:
      return "solicited events";
    case Feature::shared_receives:
      return "shared receive queues";
    case Feature::srq_limit:
      return "limit events of shared receive queues";
    case Feature::uc:
      return "UC queue pairs";
    case Feature::ud:
      return "UD queue pairs";
    case Feature::multicast:
      return "multicast";
    case Feature::drain:
      return "states SQD and SQE";
    case Feature::reset:
      return "way back from ERR to RESET";
    case Feature::steps:
      return "single steps from RESET to RTS";
    case Feature::xrc:
      return "XRC queue pairs";
  }
  return "unknown feature";
}

bool Capabilities::has(Feature feature) const {
  switch (feature) {
    case Feature::send_with_imm:
      return send_immediate;
    case Feature::write_with_imm:
      return immediate;
    case Feature::windows:
      return windows;
    case Feature::atomics:
      return atomics;
    case Feature::solicited:
      return solicited;
    case Feature::shared_receives:
      return max_srq_wr != 0;
    case Feature::srq_limit:
      return srq_limit;
    case Feature::uc:
      return uc;
    case Feature::ud:
      return ud;
    case Feature::multicast:
      return multicast;
    case Feature::drain:
      return drains;
    case Feature::reset:
      return resets;
    case Feature::steps:
      return steps;
    case Feature::xrc:
      return false;
  }
  return false;
}

std::string Capabilities::why_not(Feature feature) const {
  if (has(feature)) return {};
  const auto reason = reasons.find(feature);
  if (reason != reasons.end()) return name + " has no " + to_string(feature) + ": " + reason->second;
  return name + " has no " + to_string(feature) + ": " +
         (feature == Feature::xrc ? "they are not offered, because soft-RoCE refuses them (EOPNOTSUPP), so "
                                    "they could not be tested"
                                  : "the device does not offer it");
}

std::string why_not_on_demand(const Capabilities& capabilities) {
  return capabilities.name +
         " has no on-demand paging (Capabilities::on_demand): register without access_on_demand";
}

std::string why_not_register(const void* addr, std::size_t length, std::uint32_t access,
                             const Capabilities& capabilities) {
  if (length == 0) return "a memory region cannot be empty";
  if (length > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(addr))
    return "a memory region cannot run past the end of the address space";
  if ((access & access_remote_write) != 0 && (access & access_local_write) == 0)
    return "remote write access needs local write access too";
  if ((access & access_remote_atomic) != 0) {
    if (std::string why = capabilities.why_not(Feature::atomics); !why.empty()) return why;
    if ((access & access_local_write) == 0) return "remote atomic access needs local write access too";
  }
  if ((access & access_on_demand) != 0 && !capabilities.on_demand) return why_not_on_demand(capabilities);
  return {};
}

}  // namespace rdma_rpc::fabric
