// Tests deficit round robin alone, without sessions: shares, waiting, and members that leave at any moment.
#include "session/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace rdma_rpc::session::test {
namespace {

using Ids = std::vector<std::uint32_t>;

/// Returns the order of the first `turns` turns. In each turn, the member uses its whole credit or leaves.
Ids turns_of(FairQueue& queue, std::size_t turns, Moved moved = Moved::share) {
  Ids ids;
  queue.serve([&](std::uint32_t id, std::int64_t& credit) {
    if (ids.size() == turns) return Moved::halt;
    ids.push_back(id);
    credit = 0;
    return moved;
  });
  return ids;
}

TEST(FairQueue, ServesInTheOrderOfJoiningAgainAndAgain) {
  FairQueue queue;
  std::array<FairQueue::Member, 3> members;
  for (std::uint32_t id = 0; id < members.size(); ++id) queue.join(members[id], id);
  EXPECT_EQ(turns_of(queue, 7), (Ids{0, 1, 2, 0, 1, 2, 0}));
}

TEST(FairQueue, JoiningTwiceIsJoiningOnce) {
  FairQueue queue;
  FairQueue::Member member;
  queue.join(member, 4);
  queue.join(member, 4);
  EXPECT_EQ(turns_of(queue, 3, Moved::all), (Ids{4}));
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(member.waits());
}

/// The shares are equal for any size of the members' requests, and wherever a round is interrupted.
TEST(FairQueue, GivesMembersTheSameNumberOfBytes) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    FairQueue queue;
    std::array<FairQueue::Member, 5> members;
    std::array<std::int64_t, 5> requests, moved{};
    for (std::uint32_t id = 0; id < members.size(); ++id) {
      queue.join(members[id], id);
      requests[id] = 1'000 + static_cast<std::int64_t>(random() % kChunkBytes);
    }
    for (int rounds = 0; rounds < 300; ++rounds) {
      std::int64_t budget = static_cast<std::int64_t>(random() % (4 * kQuantumBytes));
      queue.serve([&](std::uint32_t id, std::int64_t& credit) {
        while (credit > 0) {
          if (budget <= 0) return Moved::halt;
          credit -= requests[id];
          budget -= requests[id];
          moved[id] += requests[id];
        }
        return Moved::share;
      });
    }
    const auto [least, most] = std::minmax_element(moved.begin(), moved.end());
    EXPECT_LE(*most - *least, kQuantumBytes + kChunkBytes);
    EXPECT_GT(*least, 50 * kQuantumBytes);
  }
}

TEST(FairQueue, GoesOnWhereItWasHalted) {
  FairQueue queue;
  std::array<FairQueue::Member, 2> members;
  queue.join(members[0], 0);
  queue.join(members[1], 1);
  for (const std::int64_t before : {kQuantumBytes, kQuantumBytes - 100, kQuantumBytes - 200}) {
    queue.serve([&](std::uint32_t id, std::int64_t& credit) {
      EXPECT_EQ(id, 0u);
      EXPECT_EQ(credit, before);
      credit -= 100;
      return Moved::halt;
    });
  }
}

TEST(FairQueue, AMemberThatCannotMoveDelaysNoOtherAndSavesNoCredit) {
  FairQueue queue;
  std::array<FairQueue::Member, 3> members;
  for (std::uint32_t id = 0; id < members.size(); ++id) queue.join(members[id], id);
  for (int round = 0; round < 5; ++round) {
    Ids ids;
    queue.serve([&](std::uint32_t id, std::int64_t& credit) {
      EXPECT_LE(credit, kQuantumBytes);
      ids.push_back(id);
      return Moved::stuck;
    });
    EXPECT_EQ(ids.size(), members.size()) << "each is served once";
  }
}

TEST(FairQueue, MembersMayLeaveInTheirTurnAndInThatOfOthers) {
  FairQueue queue;
  std::array<std::unique_ptr<FairQueue::Member>, 4> members;
  for (std::uint32_t id = 0; id < members.size(); ++id) {
    members[id] = std::make_unique<FairQueue::Member>();
    queue.join(*members[id], id);
  }
  Ids ids;
  queue.serve([&](std::uint32_t id, std::int64_t&) {
    ids.push_back(id);
    if (id == 0) members[0].reset();
    if (id == 1) members[2].reset();
    if (id == 3) members[3]->leave();
    return Moved::stuck;
  });
  EXPECT_EQ(ids, (Ids{0, 1, 3}));
  EXPECT_EQ(turns_of(queue, 2), (Ids{1, 1}));
}

TEST(FairQueue, MayGoBeforeItsMembers) {
  FairQueue::Member member;
  {
    FairQueue queue;
    queue.join(member, 1);
  }
  EXPECT_FALSE(member.waits());
}

}  // namespace
}  // namespace rdma_rpc::session::test
