// Tests memory of an application that a device cannot use: a read-only mapping, or a mapping of a file.
// Messages in such memory are copied, and registrations of other buffers must stay in place.
#include <array>

#include "memory/mr_cache.h"
#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

class Unpinnable : public testing::Test {
 protected:
  Unpinnable() {
    for (std::uint64_t key = 1; key <= kIdle; ++key) {
      EXPECT_NE(cache_.acquire(key, data(key), kBytes, 0, &error_), nullptr) << error_;
      cache_.unpin(key, 0);
    }
  }
  std::byte* data(std::uint64_t key) { return memory_.data() + key * kBytes; }

  static constexpr std::uint64_t kIdle = 3;
  static constexpr std::size_t kBytes = 64;
  std::array<std::byte, (kIdle + 2) * kBytes> memory_{};
  Machine machine_;
  Nic& nic_ = machine_.add(capable());
  std::unique_ptr<fabric::Device> device_ = open(nic_);
  memory::MrCache cache_{*device_, {}};
  std::string error_;
};

TEST_F(Unpinnable, MemoryCostsNoOtherRegistration) {
  for (const int error : {EFAULT, EACCES, EPERM, EOPNOTSUPP, EINVAL}) {
    nic_.registration_errors = {error};
    EXPECT_EQ(cache_.acquire(kIdle + 1, data(kIdle + 1), kBytes, 0, &error_), nullptr) << error;
    EXPECT_EQ(cache_.counters().entries, kIdle) << error;
    EXPECT_TRUE(nic_.registration_errors.empty());
  }
}

TEST_F(Unpinnable, ButALimitIsMetByGivingUpIdleOnes) {
  nic_.registration_errors = {ENOMEM, EAGAIN};
  EXPECT_NE(cache_.acquire(kIdle + 1, data(kIdle + 1), kBytes, 0, &error_), nullptr) << error_;
  EXPECT_EQ(cache_.counters().entries, kIdle - 2 + 1);
}

}  // namespace
}  // namespace rdma_rpc::nic
