// Keeps the faults that a test has planned, each with its time. Queue pairs query this list for each request
// that they execute, and devices about each object that they create.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fabric/sim/sim.h"

namespace rdma_rpc::fabric {

class FaultPlan {
 public:
  void add(const SimFault& fault) { faults_.push_back(fault); }
  void fail_nth(SimResource resource, std::uint64_t nth) {
    creations_[static_cast<std::size_t>(resource)] = nth;
  }

  /// Counts this request. Returns success, or the status with which the request must fail.
  WcStatus match(Opcode opcode, std::uint32_t qp_num, const Device* device) {
    return faults_.empty() ? WcStatus::success : find_match(opcode, qp_num, device);
  }
  /// Counts this creation. Returns true when the creation must be refused.
  bool refuse(SimResource resource);

  void lose_packet(std::uint32_t qp_num, std::uint64_t nth) { lost_packets_.push_back({qp_num, nth}); }
  /// Counts this packet. Returns true when the packet must be lost.
  bool loses_packet(std::uint32_t qp_num);

  void fail_connect(std::string why) { connect_failure_ = std::move(why); }
  /// Returns "" when the connection attempt that is ending now succeeds, otherwise the reason why it must
  /// fail.
  std::string connect_failure();

  std::uint64_t fired() const { return fired_; }

 private:
  WcStatus find_match(Opcode opcode, std::uint32_t qp_num, const Device* device);

  struct LostPacket {
    std::uint32_t qp_num;
    std::uint64_t nth;
  };
  std::vector<SimFault> faults_;
  std::vector<LostPacket> lost_packets_;
  std::array<std::uint64_t, 6> creations_{};  // number of creations until the refusal; 0 when none is planned
  std::string connect_failure_;
  std::uint64_t fired_ = 0;
};

}  // namespace rdma_rpc::fabric
