// Counts down to injected faults, see faults.h. This code runs on the world's thread.
#include "fabric/sim/faults.h"

namespace rdma_rpc::fabric {

WcStatus FaultPlan::find_match(Opcode opcode, std::uint32_t qp_num, const Device* device) {
  WcStatus status = WcStatus::success;
  std::erase_if(faults_, [&](SimFault& fault) {
    if (fault.opcode ? *fault.opcode != opcode : opcode == Opcode::recv) return false;
    if (fault.qp_num != 0 && fault.qp_num != qp_num) return false;
    if (fault.device != nullptr && fault.device != device) return false;
    if (--fault.nth > 0) return false;
    status = fault.status;
    ++fired_;
    return true;
  });
  return status;
}

bool FaultPlan::loses_packet(std::uint32_t qp_num) {
  const std::size_t fired = std::erase_if(
      lost_packets_, [qp_num](LostPacket& lost) { return lost.qp_num == qp_num && --lost.nth == 0; });
  fired_ += fired;
  return fired > 0;
}

std::string FaultPlan::connect_failure() {
  if (!connect_failure_.empty()) ++fired_;
  return std::exchange(connect_failure_, {});
}

bool FaultPlan::refuse(SimResource resource) {
  std::uint64_t& left = creations_[static_cast<std::size_t>(resource)];
  if (left == 0 || --left > 0) return false;
  ++fired_;
  return true;
}

}  // namespace rdma_rpc::fabric
