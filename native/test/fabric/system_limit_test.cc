// What is said when the system refuses something: which limit it is.
#include "fabric/system_limit.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace rdma_rpc::fabric::test {
namespace {

unsigned long lines_of(const char* path) {
  unsigned long lines = 0;
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) lines += c == '\n' ? 1u : 0u;
  std::fclose(file);
  return lines;
}

TEST(SystemLimit, OfMemoryMapsIsNamed) {
  unsigned long most = 0;
  std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "r");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fscanf(file, "%lu", &most), 1);
  std::fclose(file);
  if (most > 200'000) GTEST_SKIP() << "not run: this system allows " << most << " memory maps";
  EXPECT_EQ(system_refusal(ENOMEM).find("max_map_count"), std::string::npos);
  // Each second page with other rights: a map for every page.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = 2 * most * page;
  void* memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  int error = 0;
  for (std::size_t at = 0; at < bytes && error == 0; at += 2 * page) {
    if (::mprotect(static_cast<std::byte*>(memory) + at, page, PROT_READ) != 0) error = errno;
  }
  const std::string text = system_refusal(ENOMEM);
  const unsigned long seen = lines_of("/proc/self/maps");
  ASSERT_EQ(::munmap(memory, bytes), 0);
  EXPECT_EQ(error, ENOMEM);
  // An emulator of processors has maps of its own, which the kernel counts and it does not show.
  if (seen + 100 < most) GTEST_SKIP() << "not run: /proc/self/maps does not show all maps";
  EXPECT_NE(text.find("vm.max_map_count"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(most)), std::string::npos) << text;
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
