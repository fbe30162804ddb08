// See devices.h.
#include "verbs/devices/devices.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>

#include "fabric/tcp/tcp.h"
#include "fabric/verbs/devices.h"

/// librdmacm has a protection domain of 16 bytes on each device that it uses. librdmacm cannot free the
/// domain of a removed device, because the device's descriptors are useless by then (removal.cc) and
/// libibverbs frees an object only when the kernel confirms it. The census of each suite counts the objects
/// that we create.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:librxe-rdmav34.so\n"; }

namespace rdma_rpc::session::test {

fabric::VerbsOptions options_of(std::size_t end, std::uint8_t retry_count) {
  fabric::VerbsOptions options = fabric::test::test_options(end, fabric::VerbsConnect::automatic);
  options.retry_count = retry_count;
  return options;
}

bool over_tcp() {
  const char* name = std::getenv("RDMA_RPC_TEST_FABRIC");
  return name != nullptr && std::string(name) == "tcp";
}

std::shared_ptr<fabric::Device> open_device(std::size_t end, std::uint8_t retry_count) {
  std::string error;
  std::shared_ptr<fabric::Device> device =
      over_tcp() ? fabric::open_tcp_device({}, &error)
                 : fabric::open_verbs_device(options_of(end, retry_count), &error);
  EXPECT_NE(device, nullptr) << error;
  return device;
}

std::string why_no_devices() {
  if (over_tcp()) return {};
  for (const std::size_t end : {kClientEnd, kServerEnd}) {
    std::string error;
    const auto device = fabric::open_verbs_device(options_of(end), &error);
    if (device == nullptr) return error;
  }
  return {};
}

std::string guest_link() {
  const char* link = std::getenv("RDMA_VM");
  return link == nullptr || std::string(link) == "none" ? "" : link;
}

std::pair<int, int> guest_linux() {
  utsname linux_is{};
  ::uname(&linux_is);
  std::pair<int, int> version;
  std::sscanf(linux_is.release, "%d.%d", &version.first, &version.second);
  return version;
}

std::string shell(const std::string& command) {
  std::string output;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) {
    ADD_FAILURE() << "no shell for " << command;
    return {};
  }
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) output += line;
  EXPECT_EQ(::pclose(pipe), 0) << command << ": " << output;
  return output;
}

}  // namespace rdma_rpc::session::test
