// The wire between the two devices of the guest (test/rdma-vm): disturbed, cut and mended. Each thing mends
// it when it goes. Called by tests that have asked why_no_wire() first.
#pragma once

#include <string>

#include "verbs/devices.h"

namespace rdma_rpc::session::test {

/// Why the wire cannot be disturbed here; empty in the guest.
inline std::string why_no_wire() {
  return guest_link().empty() ? "needs the guest of npm run test:rdma, whose wire it disturbs" : "";
}

/// What goes into either end of the wire, in the words of `tc qdisc add ... netem`.
class Weather {
 public:
  explicit Weather(const std::string& netem) { both("replace", " netem " + netem); }
  ~Weather() { both("del", ""); }
  Weather(const Weather&) = delete;
  Weather& operator=(const Weather&) = delete;

 private:
  static void both(const std::string& verb, const std::string& what) {
    for (const char* end : {"v0", "v1"}) shell("tc qdisc " + verb + " dev " + end + " root" + what);
  }
};

}  // namespace rdma_rpc::session::test
