// See census.h.
#include "verbs/devices/census.h"

#include <time.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <vector>

#include "verbs/devices/devices.h"

namespace rdma_rpc::session::test {

std::map<std::string, std::size_t> descriptors() {
  std::map<std::string, std::size_t> counts;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the error of the iterator itself
    const std::string to = std::filesystem::read_symlink(fd.path(), gone).string();
    ++counts[to.substr(0, to.find(":["))];  // without the number of a socket or a pipe
  }
  return counts;
}

std::string census() {
  std::string text;
  // Descriptors of /dev/null are not counted, because librdmacm closes those of a removed device later
  // (fabric/verbs/connect/removal.h).
  for (const auto& [to, count] : descriptors()) {
    if (to != "/dev/null") text += std::to_string(count) + " x " + to + "\n";
  }
  // On other machines, other programs use the devices too.
  if (guest_link().empty()) return text;
  std::istringstream lines(shell("rdma resource show"));
  std::vector<std::string> devices;
  for (std::string line; std::getline(lines, line);) {
    devices.push_back(
        line.substr(line.find(' ') + 1));  // without its number, which changes when a device is added again
  }
  std::sort(devices.begin(), devices.end());
  for (const std::string& device : devices) text += device + "\n";
  return text;
}

VerbsFaults::~VerbsFaults() {
  // The kernel closes the files of a killed process with a delay.
  constexpr int kRoundsMax = 100;
  std::string after = census();
  for (int round = 0; after != before_ && round < kRoundsMax; ++round) {
    const timespec moment{0, 20'000'000};
    ::nanosleep(&moment, nullptr);
    after = census();
  }
  EXPECT_EQ(after, before_);
}

}  // namespace rdma_rpc::session::test
