// Runs the session suite on two real devices. See suite/device_suite.h.
#include "session/suite/device_suite.h"

namespace rdma_rpc::session::test {
namespace {

/// With less time, long messages over soft-RoCE fail on a busy machine.
constexpr std::uint8_t kRetries = 5;

INSTANTIATE_TEST_SUITE_P(Verbs, DeviceSession, testing::ValuesIn(in_every_mode([](std::size_t end) {
                           return open_device(end, kRetries);
                         })),
                         device_session_name);

}  // namespace
}  // namespace rdma_rpc::session::test
