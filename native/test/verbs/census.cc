// See census.h.
#include "verbs/census.h"

#include <time.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <system_error>
#include <vector>

#include "verbs/devices.h"

namespace rdma_rpc::session::test {

namespace {

/// What each descriptor leads to, and how many do. But for those that lead nowhere: librdmacm closes what is
/// left of a removed device in its own time (fabric/verbs/removal.cc).
std::string descriptors() {
  std::map<std::string, int> counts;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own
    const std::string to = std::filesystem::read_symlink(fd.path(), gone).string();
    if (to != "/dev/null") ++counts[to.substr(0, to.find(":["))];  // without the number of a socket or a pipe
  }
  std::string text;
  for (const auto& [to, count] : counts) text += std::to_string(count) + " x " + to + "\n";
  return text;
}

}  // namespace

std::string census() {
  std::string text = descriptors();
  // Elsewhere other programs use the devices too.
  if (guest_link().empty()) return text;
  std::istringstream lines(shell("rdma resource show"));
  std::vector<std::string> devices;
  for (std::string line; std::getline(lines, line);) {
    devices.push_back(
        line.substr(line.find(' ') + 1));  // without its number: a device added again has another
  }
  std::sort(devices.begin(), devices.end());
  for (const std::string& device : devices) text += device + "\n";
  return text;
}

VerbsFaults::~VerbsFaults() {
  // The kernel closes what a killed process had open in its own time.
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
