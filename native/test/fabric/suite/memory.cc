// Tests memory and its registration: the memory that a device provides, and registrations that it refuses
// with a reason.
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

TEST_P(FabricSuite, AllocatedMemoryIsAlignedZeroedAndWhole) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, (std::size_t{4} << 20) + 1}) {
    const auto memory = client_.device->alloc_memory(bytes, "suite");
    ASSERT_NE(memory, nullptr);
    EXPECT_GE(memory->size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % page, 0u);
    EXPECT_EQ(memory->data()[0], std::byte{0});
    EXPECT_EQ(std::memcmp(memory->data(), memory->data() + 1, bytes - 1), 0);
  }
  EXPECT_EQ(client_.device->alloc_memory(0, "suite"), nullptr);
}

TEST_P(FabricSuite, MemoryThatAnotherHolderKeepsMappedOutlivesItsOwner) {
  auto memory = client_.device->alloc_memory(3 * 4096, "suite");
  ASSERT_NE(memory, nullptr);
  std::byte* const data = memory->data();
  auto first = memory->keep_mapped(), second = memory->keep_mapped();
  memory.reset();
  first.reset();
  unsigned char resident[3];
  ASSERT_EQ(::mincore(data, sizeof resident * 4096, resident), 0) << "what a page fault would say";
  std::memset(data, 1, 3 * 4096);
  second.reset();
}

TEST_P(FabricSuite, AnInvalidRegistrationIsRefusedWithAReason) {
  Memory& memory_ = memory(client_, 4096, kLocal);
  const auto why_not = [&](std::size_t length, std::uint32_t access) {
    std::string error;
    EXPECT_EQ(client_.device->reg_mr(memory_.data(), length, access, &error), nullptr);
    return error;
  };
  EXPECT_NE(why_not(0, kLocal), "");
  EXPECT_NE(why_not(4096, access_remote_write), "") << "remote write needs local write";
  EXPECT_NE(why_not(SIZE_MAX, access_local_write), "") << "past the end of the address space";
  EXPECT_NE(why_not(~std::size_t{0} / 2, kLocal | access_on_demand), "");
}

TEST_P(FabricSuite, OnDemandPagingIsRefusedWhereUnsupported) {
  Memory& memory_ = memory(client_, 4096, kLocal);
  std::string error;
  const auto region = client_.device->reg_mr(memory_.data(), 4096, kLocal | access_on_demand, &error);
  EXPECT_EQ(region != nullptr, caps().on_demand) << error;
  EXPECT_EQ(error.find("on_demand") == std::string::npos, caps().on_demand) << error;
}

TEST_P(FabricSuite, ADmabufIsRefusedWhereUnsupportedAndABadOneEverywhere) {
  std::string error;
  EXPECT_EQ(client_.device->reg_dmabuf_mr(-1, 0, 4096, 0, kLocal, &error), nullptr);
  EXPECT_NE(error.find("dmabuf"), std::string::npos) << error;
}

TEST_P(FabricSuite, ARegionMayBeReleasedWhileAWindowIsBoundToIt) {
  RDMA_RPC_NEEDS(windows);
  connect();
  Memory& local = memory(server_, 64, kLocal | access_remote_write);
  const auto host = client_.device->alloc_memory(4096, "suite");
  std::string error;
  auto region = client_.device->reg_mr(host->data(), 4096, kBindable, &error);
  ASSERT_NE(region, nullptr) << error;
  MemoryWindow& mw = window(client_);
  post(client_, bind_wr(mw, *region, region->addr(), 4096, access_remote_write));
  expect(client_, 0xb1);
  const std::uint64_t addr = region->addr();
  const std::uint32_t key = mw.rkey();
  region.reset();
  std::memset(host->data(), 0xee, 4096);
  const Sge sge = local.sge(0, 8);
  post(server_, request(Opcode::rdma_write, 1, {&sge, 1}, addr, key));
  expect(server_, 1, WcStatus::rem_access_err);
  EXPECT_EQ(host->data()[0], std::byte{0xee});
}

}  // namespace rdma_rpc::fabric::test
