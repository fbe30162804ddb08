// Tests opening and listing real RDMA devices: the choice of the device, and the errors for devices that
// cannot be opened.
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "fabric/verbs/devices.h"

namespace rdma_rpc::fabric::test {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string why_not(const VerbsOptions& options) {
  std::string error;
  EXPECT_EQ(open_verbs_device(options, &error), nullptr);
  return error;
}

VerbsDevice listed(const std::string& name) {
  for (const VerbsDevice& device : list_verbs_devices({}).devices) {
    if (device.name == name || name.empty()) return device;
  }
  return {};
}

const VerbsGid* ipv4_gid(const VerbsDevice& device) {
  for (const VerbsPort& port : device.ports) {
    for (const VerbsGid& gid : port.gids) {
      if (gid.gid.find('.') != std::string::npos) return &gid;
    }
  }
  return nullptr;
}

/// Runs `work` in a separate process, which may drop rights that this process needs. Returns its text.
std::string said_by_a_child(const std::function<std::string()>& work) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = work();
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return text;
}

TEST(VerbsOpen, TheListHasEachDeviceWithItsPortsGidsAndAbilities) {
  const VerbsReport report = list_verbs_devices({});
  EXPECT_EQ(report.why_none, "");
  EXPECT_FALSE(report.memlock.empty());
  const VerbsDevice device = listed(test_options(0, VerbsConnect::automatic).device);
  ASSERT_FALSE(device.ports.empty());
  EXPECT_EQ(device.why_not, "");
  EXPECT_EQ(device.ports[0].number, 1u);
  EXPECT_EQ(device.ports[0].state, "ACTIVE");
  EXPECT_GE(device.ports[0].active_mtu, 256u);
  EXPECT_FALSE(device.ports[0].gids.empty());
  EXPECT_GT(device.capabilities.max_qp_wr, 0u);
  EXPECT_GT(device.capabilities.max_sge, 0u);
}

TEST(VerbsOpen, AMissingDeviceIsRefusedWithTheAvailableOnes) {
  VerbsOptions options;
  options.device = "no_such_device";
  const std::string why = why_not(options);
  EXPECT_TRUE(has(why, "'no_such_device' (option device)") && has(why, listed("").name)) << why;
}

TEST(VerbsOpen, AMissingPortIsRefusedWithTheAvailableOnes) {
  VerbsOptions options = test_options(0, VerbsConnect::automatic);
  options.port = 200;
  EXPECT_TRUE(has(why_not(options), "has no port 200 (option port); it has 1")) << why_not(options);
}

TEST(VerbsOpen, AMissingGidIsRefusedWithTheAvailableOnes) {
  VerbsOptions options = test_options(0, VerbsConnect::automatic);
  options.gid_index = 250;
  const std::string why = why_not(options);
  EXPECT_TRUE(has(why, "has no GID number 250 (option gidIndex); it has 0 (")) << why;
}

TEST(VerbsOpen, TheDeviceIsTheOneThatHasTheAddress) {
  for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
    const VerbsDevice device = listed(test_options(which, VerbsConnect::automatic).device);
    const VerbsGid* gid = ipv4_gid(device);
    if (gid == nullptr) GTEST_SKIP() << "not run: " << device.name << " has no IPv4 address";
    VerbsOptions options;
    options.address = gid->gid;
    std::string error;
    const auto opened = open_verbs_device(options, &error);
    ASSERT_NE(opened, nullptr) << error;
    EXPECT_EQ(opened->capabilities().name, device.name);
  }
}

TEST(VerbsOpen, AnAddressThatNoDeviceHasIsIgnored) {
  for (const char* address : {"127.0.0.1", "203.0.113.7", "::1", "not an address"}) {
    VerbsOptions options;
    options.address = address;
    std::string error;
    EXPECT_NE(open_verbs_device(options, &error), nullptr) << error;
  }
}

TEST(VerbsOpen, WithoutRightsOnTheDeviceFilesTheErrorNamesThem) {
  if (::geteuid() != 0) GTEST_SKIP() << "not run: only root can become nobody";
  const std::string why = said_by_a_child([] {
    if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0)
      return std::string("setuid");
    const VerbsDevice device = listed(test_options(0, VerbsConnect::automatic).device);
    return device.why_not.empty() ? std::string("has rights") : device.why_not;
  });
  if (why == "has rights") GTEST_SKIP() << "not run: everybody may open the device here";
  EXPECT_TRUE(has(why, "no permission on /dev/infiniband/uverbs")) << why;
}

TEST(VerbsOpen, WhereLockedMemoryIsLimitedTheErrorNamesTheLimit) {
  const std::string why = said_by_a_child([] {
    const rlimit limit{65536, 65536};
    ::setrlimit(RLIMIT_MEMLOCK, &limit);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2] = {};
    ::syscall(SYS_capget, &header, sets);
    sets[0].effective &= ~(1u << CAP_IPC_LOCK);
    ::syscall(SYS_capset, &header, sets);
    std::string error;
    const auto device = open_verbs_device(test_options(0, VerbsConnect::automatic), &error);
    if (device == nullptr) return error;
    const auto memory = device->alloc_memory(std::size_t{4} << 20, "test");
    const auto region = device->reg_mr(memory->data(), memory->size(), access_local_write, &error);
    return region != nullptr ? std::string("registered") : error + "\n" + list_verbs_devices({}).memlock;
  });
  if (why == "registered") GTEST_SKIP() << "not run: the limit does not hold here";
  EXPECT_TRUE(has(why, "locked memory is limited to 65536 bytes (raise it with ulimit -l")) << why;
  EXPECT_TRUE(has(why, "\n65536 bytes")) << why;
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
