// The faults that a test has asked for, and when each is due. Asked by queue pairs for each request they
// carry out and by devices for each object they make.
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

  /// Counts this request; the status that it shall fail with, or success.
  WcStatus strike(Opcode opcode, std::uint32_t qp_num, const Device* device) {
    return faults_.empty() ? WcStatus::success : strike_slow(opcode, qp_num, device);
  }
  /// Counts this creation; true when it shall be refused.
  bool refuse(SimResource resource);

  void fail_connect(std::string why) { connect_failure_ = std::move(why); }
  /// Why the connection that is being concluded shall fail; empty: it may stand.
  std::string connect_failure();

  std::uint64_t fired() const { return fired_; }

 private:
  WcStatus strike_slow(Opcode opcode, std::uint32_t qp_num, const Device* device);

  std::vector<SimFault> faults_;
  std::array<std::uint64_t, 6> creations_{};  // how many until the refusal; 0: none planned
  std::string connect_failure_;
  std::uint64_t fired_ = 0;
};

}  // namespace rdma_rpc::fabric
