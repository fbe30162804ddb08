// Disturbs, cuts, unplugs and restores the wire between the two devices of the guest (test/rdma-vm). Each of
// these objects restores the wire when it is destroyed. Tests use this file only after they have checked
// why_no_wire().
#pragma once

#include <string>

#include "verbs/devices/devices.h"

namespace rdma_rpc::session::test {

/// Returns the reason why the wire cannot be disturbed here; "" in the guest.
inline std::string why_no_wire() {
  return guest_link().empty() ? "needs the guest of npm run test:rdma, whose wire it disturbs" : "";
}

/// The rule for packets that enter either end of the wire, in the syntax of `tc qdisc add ... netem`.
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

/// The link at one end of the wire is down. Routes and neighbours, which the kernel forgets with it, are
/// restored.
class Unplugged {
 public:
  explicit Unplugged(const std::string& end) : end_(end) { shell("ip link set " + end + " down"); }
  ~Unplugged() {
    shell("ip link set " + end_ +
          " up; ip -force -batch /run/rdma-vm/wire >/dev/null 2>&1; ip -6 -force -batch /run/rdma-vm/wire6 "
          ">/dev/null 2>&1; " +
          "until [ $(rdma link | grep -c 'state ACTIVE') = 2 ]; do sleep 0.05; done");
  }
  Unplugged(const Unplugged&) = delete;
  Unplugged& operator=(const Unplugged&) = delete;

 private:
  std::string end_;
};

}  // namespace rdma_rpc::session::test
