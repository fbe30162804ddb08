// Runs the fabric suite on tcp: two devices in this process, connected over loopback. One variant has a short
// queue of unsent bytes, to show that nothing is lost when a connection often accepts no more bytes.
#include <gtest/gtest.h>

#include "fabric/suite/fabric_suite.h"
#include "fabric/tcp/tcp.h"

namespace rdma_rpc::fabric::test {
namespace {

class TcpFabric final : public FabricUnderTest {
 public:
  explicit TcpFabric(const TcpOptions& options)
      : client_(open_tcp_device(options, &error_)), server_(open_tcp_device(options, &error_)) {}
  Device& client() override { return *client_; }
  Device& server() override { return *server_; }
  void pump() override {}
  // Loopback usually delivers inside the system call. When another thread of the kernel has the socket, it
  // delivers a moment later.
  int idle_rounds() const override { return 200; }

 private:
  std::string error_;
  std::unique_ptr<Device> client_, server_;
};

FabricFactory factory(std::string name, const TcpOptions& options) {
  return {std::move(name), [options] { return std::make_unique<TcpFabric>(options); }};
}

INSTANTIATE_TEST_SUITE_P(Tcp, FabricSuite,
                         ::testing::Values(factory("tcp", {}), factory("tcp_over_ipv6", {.host = "::1"}),
                                           factory("tcp_short_queue", {.unsent_max = 4096})),
                         factory_name);

}  // namespace
}  // namespace rdma_rpc::fabric::test
