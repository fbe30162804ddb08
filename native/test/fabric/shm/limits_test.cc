// Tests shm in a process without free descriptors, or without free addresses: existing connections keep
// working, errors name the limit, and no peer is declared dead.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "fabric/shm/connect/process.h"
#include "fabric/shm/peers.h"

namespace rdma_rpc::fabric::test {
namespace {

/// While this object exists, no descriptor can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

void expect_names_the_limit(const std::string& why) {
  EXPECT_NE(why.find("Too many open files; this process may have 0 (raise it with ulimit -n"),
            std::string::npos)
      << why;
}

TEST(ShmLimits, WithoutDescriptorsTheErrorNamesTheLimit) {
  std::string error;
  const auto device = open_shm_device({}, &error);
  ASSERT_NE(device, nullptr) << error;
  ShmEnd peer;
  ShmEnd end;
  const auto address = peer.qp->local_address();
  // This first call is needed, because a sanitizer opens descriptors when it first inspects an object of a
  // type.
  EXPECT_EQ(device->refusal(), "");
  const NoDescriptors none;
  EXPECT_EQ(device->alloc_memory(4096, "test"), nullptr);
  expect_names_the_limit(device->refusal());
  EXPECT_EQ(device->create_cq(16), nullptr);
  expect_names_the_limit(device->refusal());
  expect_names_the_limit(end.qp->connect(address));
}

#ifndef __SANITIZE_ADDRESS__  // the sanitizer has reserved all addresses
/// Returns whether the system still has `bytes` bytes of addresses for this process.
bool addresses_for(std::size_t bytes) {
  void* const start = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return start != MAP_FAILED && ::munmap(start, bytes) == 0;
}

TEST(ShmLimits, WithoutAddressSpaceTheErrorNamesTheLimitAndOthersContinue) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  ShmEnd client, server;
  ASSERT_EQ(server.qp->connect(client.qp->local_address()), "");
  ASSERT_EQ(client.qp->connect(server.qp->local_address()), "");
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit few{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kBytes / 2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &few), 0);
  if (addresses_for(kBytes)) {
    ::setrlimit(RLIMIT_AS, &before);
    GTEST_SKIP() << "an emulator keeps no limit of addresses (setrlimit(2), RLIMIT_AS)";
  }
  const auto memory = client.device->alloc_memory(kBytes, "test");
  const std::string why = client.device->refusal();
  EXPECT_NE(client.device->alloc_memory(1 << 16, "test"), nullptr);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(memory, nullptr);
  EXPECT_NE(why.find("bytes of addresses (raise it with ulimit -v)"), std::string::npos) << why;
  EXPECT_NE(client.device->alloc_memory(kBytes, "test"), nullptr);
  EXPECT_EQ(server.qp->state(), QpState::rts);
}
#endif

TEST(ShmLimits, WithoutDescriptorsNoPeerCountsAsDead) {
  const shm::ProcessIdentity self = shm::this_process();
  const NoDescriptors none;
  int unknown = 0;
  EXPECT_TRUE(shm::is_running(self, &unknown));
  EXPECT_EQ(unknown, EMFILE);
}

TEST(ShmLimits, MemoryThatCannotBeReachedNowCostsNoConnection) {
  ShmEnd client, server;
  const auto memory = client.device->alloc_memory(1 << 16, "request");
  ASSERT_NE(memory, nullptr);
  std::string error;
  const auto region =
      client.device->reg_mr(memory->data(), memory->size(), access_local_write | access_remote_read, &error);
  ASSERT_NE(region, nullptr) << error;
  ASSERT_EQ(server.qp->connect(client.qp->local_address()), "");
  ASSERT_EQ(client.qp->connect(server.qp->local_address()), "");
  const auto reach = [&] { return server.qp->reach(region->rkey(), region->addr(), region->length()); };
  {
    const NoDescriptors none;
    expect_names_the_limit(reach());
    EXPECT_EQ(server.qp->state(), QpState::rts);
  }
  EXPECT_EQ(reach(), "");
  const NoDescriptors none;
  EXPECT_EQ(reach(), "") << "what has been reached once stays";
  EXPECT_EQ(server.qp->reach(region->rkey() + 1, region->addr(), 1), "") << "the READ itself tells";
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
