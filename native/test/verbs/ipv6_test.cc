// Tests connections by IPv6 addresses, global and link-local. The device that has the address is found, and
// calls cross the wire and return complete. The tests use the guest's addresses (test/rdma-vm).
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "verbs/devices/census.h"
#include "verbs/devices/ends.h"
#include "verbs/devices/wire.h"

namespace rdma_rpc::session::test {
namespace {

struct Addresses {
  const char* name;
  const char* of_end[2];
  fabric::VerbsConnect connect;
};
void PrintTo(const Addresses& addresses, std::ostream* out) { *out << addresses.name; }

class Ipv6 : public VerbsFaults, public testing::WithParamInterface<Addresses> {
 protected:
  void SetUp() override {
    if (guest_link().empty())
      GTEST_SKIP() << "not run: needs the addresses of the guest of npm run test:rdma";
    if (guest_link() == "siw" && GetParam().connect == fabric::VerbsConnect::sideband)
      GTEST_SKIP() << "not run: iWARP devices are connected by rdma_cm only";
  }

  /// The device is found by its address alone.
  static std::shared_ptr<fabric::Device> device_at(std::size_t end) {
    fabric::VerbsOptions options = options_of(end);
    const std::string name = std::exchange(options.device, "");
    options.address = GetParam().of_end[end];
    options.connect = GetParam().connect;
    std::string error;
    std::shared_ptr<fabric::Device> device = fabric::open_verbs_device(options, &error);
    EXPECT_NE(device, nullptr) << error;
    if (device != nullptr) {
      EXPECT_EQ(device->capabilities().name, name);
    }
    return device;
  }

  /// Returns the number of packets that the server's end of the wire has counted.
  static std::uint64_t received(const char* what) {
    return std::strtoull(shell(std::string("cat /sys/class/net/v1/statistics/") + what).c_str(), nullptr, 10);
  }
};

TEST_P(Ipv6, CallsCrossTheWireAndTheirBytesAreRight) {
  Ends ends(device_at(kClientEnd), device_at(kServerEnd));
  const Link link = ends.connect();
  const std::uint64_t before = received("rx_bytes");
  for (int round = 0; round < 3; ++round) {
    std::vector<std::uint64_t> calls;
    for (const CallSpec& spec : mixed_calls()) calls.push_back(ends.start(link, spec));
    ends.until([&] { return ends.ledger.open() == 0; }, "the end of all calls");
    for (const std::uint64_t id : calls) EXPECT_TRUE(ends.call(id).answered());
  }
  EXPECT_GT(received("rx_bytes"), before + 100'000) << "it went another way";
  EXPECT_EQ(ends.why_down(link), "");
  EXPECT_EQ(ends.finish(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(
    With, Ipv6,
    testing::Values(
        Addresses{"GlobalByRdmaCm", {"fd77::1", "fd77::2"}, fabric::VerbsConnect::cm},
        Addresses{"GlobalBySideband", {"fd77::1", "fd77::2"}, fabric::VerbsConnect::sideband},
        Addresses{"LinkLocalByRdmaCm", {"fe80::ff:fe77:1", "fe80::ff:fe77:2"}, fabric::VerbsConnect::cm},
        Addresses{
            "LinkLocalBySideband", {"fe80::ff:fe77:1", "fe80::ff:fe77:2"}, fabric::VerbsConnect::sideband}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rdma_rpc::session::test
