// Declares the fixture of the session tests that run in real time on two devices of any fabric. The tests are
// in device_suite.cc. A fabric runs all of them by adding one file with
//   INSTANTIATE_TEST_SUITE_P(Tcp, DeviceSession, testing::ValuesIn(in_every_mode(open)),
//   device_session_name);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "verbs/devices/ends.h"

namespace rdma_rpc::session::test {

struct DevicesInMode {
  Exposure exposure;
  /// Opens the device of the client (0) or of the server (1).
  std::function<std::shared_ptr<fabric::Device>(std::size_t)> open;
};

inline std::vector<DevicesInMode> in_every_mode(
    const std::function<std::shared_ptr<fabric::Device>(std::size_t)>& open) {
  return {{Exposure::automatic, open}, {Exposure::staging, open}, {Exposure::shared, open}};
}
inline std::string device_session_name(const testing::TestParamInfo<DevicesInMode>& info) {
  return to_string(info.param.exposure);
}

class DeviceSession : public testing::TestWithParam<DevicesInMode> {
 protected:
  Ends pair{GetParam().open(kClientEnd), GetParam().open(kServerEnd), GetParam().exposure};
};

}  // namespace rdma_rpc::session::test
