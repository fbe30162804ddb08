// Tests the explanation of a refusal by the system, which must name the limit.
#include "fabric/system_limit.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace rdma_rpc::fabric::test {
namespace {

TEST(SystemLimit, OfMemoryMapsIsNamed) {
  // An emulator's own maps also count, and the emulator fails when it gets no more maps.
  if (std::getenv("RDMA_RPC_EMULATED") != nullptr)
    GTEST_SKIP() << "not run: an emulator needs memory maps itself";
  unsigned long most = 0;
  std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "r");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fscanf(file, "%lu", &most), 1);
  std::fclose(file);
  if (most > 200'000) GTEST_SKIP() << "not run: this system allows " << most << " memory maps";
  EXPECT_EQ(system_refusal(ENOMEM).find("max_map_count"), std::string::npos);
  // Every second page gets other rights, so each page needs a map of its own.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = 2 * most * page;
  void* memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  int error = 0;
  for (std::size_t at = 0; at < bytes && error == 0; at += 2 * page) {
    if (::mprotect(static_cast<std::byte*>(memory) + at, page, PROT_READ) != 0) error = errno;
  }
  const std::string text = system_refusal(ENOMEM);
  ASSERT_EQ(::munmap(memory, bytes), 0);
  EXPECT_EQ(error, ENOMEM);
  EXPECT_NE(text.find("vm.max_map_count"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(most)), std::string::npos) << text;
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
