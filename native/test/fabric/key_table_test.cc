// Tests keys of a software device. A key that has ended gives no access for a long time, independent of what
// is created after it, and a key of another process gives no access here.
#include "fabric/software/key_table.h"

#include <gtest/gtest.h>

#include <set>

namespace rdma_rpc::fabric::test {
namespace {

using software::KeyEntry;
using software::KeyTable;

const KeyEntry kRegion{
    .kind = KeyEntry::Kind::region, .access = access_remote_read, .addr = 0x1000, .length = 64};

TEST(KeyTable, AnEndedKeyIsNotReusedForALongTime) {
  KeyTable keys(7);
  const std::uint32_t ended = keys.add(kRegion);
  keys.remove(ended);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t key = keys.add(kRegion);
    ASSERT_NE(key, ended) << "after " << i << " others";
    keys.remove(key);
  }
  EXPECT_EQ(keys.find(ended), nullptr);
}

/// A peer that has seen a server restart may still use keys of the earlier process.
TEST(KeyTable, BeginElsewhereInEachProcess) {
  std::set<std::uint32_t> first;
  for (std::uint32_t seed = 0; seed < 256; ++seed) first.insert(KeyTable(0x5eed00 + seed).add(kRegion));
  EXPECT_EQ(first.size(), 256u);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
