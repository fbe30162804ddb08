// Tests the arithmetic of shared receives against a model. Whatever the sessions take and return, the grants
// never exceed the receives, and each session can have its guaranteed credits.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "session/link/credit_pool.h"

namespace rdma_rpc::session::test {
namespace {

TEST(CreditPool, NeverGrantsMoreThanItHasAndLeavesEachSessionItsCertainCredits) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    CreditPool pool;
    pool.grow(static_cast<std::uint32_t>(random() % 2000));
    std::vector<CreditPool::Account> accounts;
    for (int i = 0; i < 2000; ++i) {
      CreditPool::Account* any = accounts.empty() ? nullptr : &accounts[random() % accounts.size()];
      switch (random() % 8) {
        case 0: {
          CreditPool::Account account;
          const auto certain = static_cast<std::uint32_t>(1 + random() % 40);
          const std::uint32_t left = pool.left();
          const bool opened =
              pool.open(account, certain, certain + static_cast<std::uint32_t>(random() % 300));
          EXPECT_EQ(opened, left >= certain);
          if (opened) accounts.push_back(account);
          break;
        }
        case 1:
          if (any == nullptr) break;
          pool.close(*any);
          *any = accounts.back();
          accounts.pop_back();
          break;
        case 2:
          if (random() % 16 == 0) pool.grow(static_cast<std::uint32_t>(random() % 100));
          break;
        case 3:
        case 4:
          if (any != nullptr) pool.give_back(*any, static_cast<std::uint32_t>(random() % (any->held + 1)));
          break;
        default: {
          if (any == nullptr) break;
          const CreditPool::Account before = *any;
          const auto wanted = static_cast<std::uint32_t>(random() % 400);
          const std::uint32_t got = pool.take(*any, wanted);
          EXPECT_EQ(any->held, before.held + got);
          EXPECT_LE(got, wanted);
          EXPECT_LE(any->held, any->most);
          // The guaranteed credits are always available.
          EXPECT_GE(any->held, std::min(any->certain, before.held + wanted));
          // Additional credits leave the next session its share.
          if (any->beyond() > before.beyond()) {
            EXPECT_LE(any->beyond(), kCreditShare * pool.left());
          }
        }
      }
      std::uint64_t held = 0, promised = 0;
      for (const CreditPool::Account& account : accounts) {
        held += account.held;
        promised += std::max(account.held, account.certain);
      }
      ASSERT_LE(held, pool.receives());
      ASSERT_EQ(promised + pool.left(), pool.receives());
    }
    for (CreditPool::Account& account : accounts) pool.close(account);
    EXPECT_EQ(pool.left(), pool.receives());
  }
}

TEST(CreditPool, LeavesCreditsToTheNextSessionWhenOneTakesAllThatItCan) {
  CreditPool pool;
  pool.grow(1000);
  std::vector<CreditPool::Account> accounts(4);
  for (CreditPool::Account& account : accounts) ASSERT_TRUE(pool.open(account, 10, 900));
  std::uint32_t before = 1000;
  for (CreditPool::Account& account : accounts) {
    while (pool.take(account, 1000) != 0) {
    }
    EXPECT_GT(account.beyond(), 0u);
    EXPECT_LT(account.beyond(), before);
    before = account.beyond();
  }
  // The sessions with most credits get none of the credits that they return, until all sessions have the same
  // number.
  CreditPool::Account& first = accounts.front();
  const std::uint32_t most = first.beyond();
  pool.give_back(first, 1);
  EXPECT_EQ(pool.take(first, 1), 0u);
  EXPECT_LT(first.beyond(), most);
}

}  // namespace
}  // namespace rdma_rpc::session::test
