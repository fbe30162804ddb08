// Tests that the device's own code of a failed completion is part of the session's error, because a vendor's
// support asks for it first.
#include <gtest/gtest.h>

#include <memory>

#include "session/sides/pair.h"
#include "verbs/devices/hooked_device.h"

namespace rdma_rpc::session::test {
namespace {

constexpr std::uint32_t kCode = 0x81;

struct Failed {
  const char* name;
  fabric::SimFault fault;  ///< a fault at the client
  std::uint32_t vendor_err;
  const char* error;
};

const Failed kFailed[] = {
    {"Send",
     {.opcode = fabric::Opcode::send, .status = fabric::WcStatus::retry_exc_err},
     kCode,
     "send failed: retry_exc_err, vendor_err 0x81"},
    {"Receive",
     {.opcode = fabric::Opcode::recv, .status = fabric::WcStatus::loc_prot_err},
     kCode,
     "receive failed: loc_prot_err, vendor_err 0x81"},
    {"SendWithoutACode",
     {.opcode = fabric::Opcode::send, .status = fabric::WcStatus::retry_exc_err},
     0,
     "send failed: retry_exc_err"},
};

class VendorErr : public testing::TestWithParam<Failed> {};

TEST_P(VendorErr, IsInTheErrorOfTheSession) {
  PairOptions options;
  Ledger ledger;
  fabric::SimWorld world(options.sim);
  auto hooks = std::make_shared<Hooks>();
  hooks->polled = [code = GetParam().vendor_err](fabric::Wc& wc) {
    if (wc.status != fabric::WcStatus::success) wc.vendor_err = code;
  };
  const std::shared_ptr<fabric::Device> device = world.open_device("client");
  Side client(ledger, std::make_shared<HookedDevice>(device, hooks), options.context);
  Side server(ledger, world.open_device("server"), options.context);
  std::uint32_t client_session = 0, server_session = 0;
  connect(client, client_session, server, server_session, options);
  fabric::SimFault fault = GetParam().fault;
  fault.device = device.get();
  world.fail(fault);
  client.start(client_session, {});
  client.flush();
  for (int i = 0; i < 100 && !client.is_down(client_session); ++i)
    let_pass(world, {&client, &server}, 1'000'000);
  EXPECT_EQ(client.why_down(client_session), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(Of, VendorErr, testing::ValuesIn(kFailed),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rdma_rpc::session::test
