// Tests the loader of the verbs plug-in when something is missing. Each case has its own error text. The
// tests need no device.
#include "fabric/verbs_loader.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace rdma_rpc::fabric::test {
namespace {

std::string why_no_entry(const std::string& path) {
  std::string error;
  EXPECT_EQ(verbs_plugin_entry(path, kVerbsOpen, &error), nullptr);
  return error;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(VerbsLoader, APlugInThatWasNotBuiltIsNamedWithWhatBuildsIt) {
  const std::string why = why_no_entry("/nowhere/rdma_rpc_verbs.so");
  EXPECT_TRUE(has(why, "there is no /nowhere/rdma_rpc_verbs.so") && has(why, "libibverbs-dev")) << why;
}

TEST(VerbsLoader, AFileThatIsNoPlugInIsNamedWithThePackagesThatItNeeds) {
  char path[] = "/tmp/rdma-rpc-broken-XXXXXX";
  const int file = ::mkstemp(path);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::write(file, "not a library", 13), 13);
  const std::string why = why_no_entry(path);
  ::close(file);
  ::unlink(path);
  EXPECT_TRUE(has(why, path) && has(why, "libibverbs1")) << why;
}

TEST(VerbsLoader, ALibraryWithoutTheEntryIsOfAnotherVersion) {
  Dl_info libc{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&::getenv), &libc), 0);
  if (::access(libc.dli_fname, R_OK) != 0) {
    GTEST_SKIP() << "not run: an emulator has the libraries elsewhere than it says";
  }
  const std::string why = why_no_entry(libc.dli_fname);
  EXPECT_TRUE(has(why, "is of another version")) << why;
}

TEST(VerbsLoader, WithoutADeviceOpeningAndListingGiveTheSameReason) {
  const VerbsReport report = list_verbs_devices({});
  if (report.why_none.empty()) GTEST_SKIP() << "not run: this machine has RDMA devices";
  std::string error;
  EXPECT_EQ(open_verbs_device({}, &error), nullptr);
  EXPECT_TRUE(has(error, "verbs is off: ") && has(error, report.why_none.c_str())) << error;
  EXPECT_TRUE(report.devices.empty());
}

TEST(VerbsLoader, BadOptionsAreRefusedByName) {
  std::string error;
  VerbsOptions options;
  options.ack_timeout = 32;
  EXPECT_EQ(open_verbs_device(options, &error), nullptr);
  if (has(error, "there is no") && has(error, kVerbsPlugin)) GTEST_SKIP() << "not run: " << error;
  EXPECT_TRUE(has(error, "ackTimeout is 32")) << error;
  options = {};
  options.retry_count = 8;
  EXPECT_EQ(open_verbs_device(options, &error), nullptr);
  EXPECT_TRUE(has(error, "retryCount is 8")) << error;
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
