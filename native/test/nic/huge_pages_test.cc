// Tests huge pages that exist but that this process may not use, as in a Kubernetes pod whose control group
// limits them. Other tests are about machines whose default huge page has 1 GiB.
#include "nic/device/huge_pages.h"

#include <cstring>

#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20, kPage = 2 * kMiB, kGiB = std::size_t{1} << 30;

class HugePagesOf : public testing::TestWithParam<bool> {
 protected:
  HugePagesOf() { pages_.old_kernel = GetParam(); }

  /// Returns memory of the device, after the test has written to it and registered it.
  std::unique_ptr<fabric::HostMemory> memory(std::size_t bytes) {
    auto memory = device_->alloc_memory(bytes, "test");
    EXPECT_NE(memory, nullptr) << device_->refusal();
    for (std::size_t i = 0; i < bytes; i += 4096) EXPECT_EQ(memory->data()[i], std::byte{0});
    std::memset(memory->data(), 1, bytes);
    std::string error;
    EXPECT_NE(device_->reg_mr(memory->data(), bytes, fabric::access_local_write, &error), nullptr) << error;
    return memory;
  }

  HugePages pages_;
  Machine machine_;
  std::unique_ptr<fabric::Device> device_ = open(machine_.add(capable()));
};

TEST_P(HugePagesOf, AreUsedWhereTheyAreFreeAndGivenBack) {
  pages_.reserved[kPage] = 8;
  auto huge = memory(4 * kPage);
  EXPECT_EQ(pages_.mapped_bytes(), 4 * kPage);
  huge.reset();
  EXPECT_EQ(pages_.mapped_bytes(), 0u);
  EXPECT_EQ(pages_.munmaps_refused, 0u);
}

TEST_P(HugePagesOf, ThatTheControlGroupForbidsAreReplacedByOrdinaryPages) {
  pages_.reserved[kPage] = 8;
  pages_.allowed = 0;
  const auto ordinary = memory(4 * kPage);
  EXPECT_EQ(pages_.mapped_bytes(), 0u);
  pages_.allowed = 4;
  const auto huge = memory(4 * kPage);
  EXPECT_EQ(pages_.mapped_bytes(), 4 * kPage);
  const auto too_many = memory(4 * kPage);
  EXPECT_EQ(pages_.mapped_bytes(), 4 * kPage);
}

TEST_P(HugePagesOf, OneGibibyteEachAreLeftAlone) {
  pages_.default_page = kGiB;
  pages_.reserved[kGiB] = 4;
  memory(4 * kPage);
  EXPECT_EQ(pages_.mapped_bytes(), 0u);
  EXPECT_EQ(pages_.munmaps_refused, 0u);
  EXPECT_EQ(pages_.reserved[kGiB], 4u);
}

TEST_P(HugePagesOf, AreNotUsedForMemoryThatWouldWasteMuchOfThem) {
  pages_.reserved[kPage] = 8;
  // The receives of a session with default options.
  const auto receives = memory(std::size_t{276} * 8256);
  EXPECT_EQ(pages_.mapped_bytes(), 0u);
  EXPECT_EQ(device_->counters().memory_bytes, std::size_t{276} * 8256);
}

INSTANTIATE_TEST_SUITE_P(Linux, HugePagesOf, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Before5_14" : "Today"); });

TEST(MemoryThatCannotBePinned, IsRefusedWithTheReasons) {
  Machine machine;
  Nic& nic = machine.add(capable());
  const auto device = open(nic);
  const auto memory = device->alloc_memory(4096, "test");
  nic.registration_errors = {EFAULT};
  std::string error;
  EXPECT_EQ(device->reg_mr(memory->data(), 4096, fabric::access_local_write, &error), nullptr);
  EXPECT_NE(error.find("hugetlb.2MB.max"), std::string::npos) << error;
}

}  // namespace
}  // namespace rdma_rpc::nic
