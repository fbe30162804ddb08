// Runs the session suite on two devices of the tcp fabric, over loopback. See suite/device_suite.h.
#include "fabric/tcp/tcp.h"
#include "session/suite/device_suite.h"

namespace rdma_rpc::session::test {
namespace {

std::shared_ptr<fabric::Device> open_tcp(std::size_t) {
  std::string error;
  std::shared_ptr<fabric::Device> device = fabric::open_tcp_device({}, &error);
  EXPECT_NE(device, nullptr) << error;
  return device;
}

INSTANTIATE_TEST_SUITE_P(Tcp, DeviceSession, testing::ValuesIn(in_every_mode(open_tcp)), device_session_name);

}  // namespace
}  // namespace rdma_rpc::session::test
