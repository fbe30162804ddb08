// Tests many queue pairs on one completion queue: a poll looks only at the active ones, independent of the
// total number. The tests count and do not measure time.
#include "fabric/shm/queue/announcements.h"

#include <poll.h>

#include <algorithm>

#include "fabric/shm/device.h"
#include "fabric/shm/peers.h"
#include "fabric/shm/queue/completion_queue.h"

namespace rdma_rpc::fabric::test {
namespace {

/// Two devices of this process with connected queue pairs.
class ShmMany : public testing::Test {
 protected:
  static constexpr std::uint32_t kReceives = 4;
  struct Side {
    std::string error;
    std::unique_ptr<Device> device = open_shm_device({}, &error);
    std::unique_ptr<CompletionQueue> cq = device->create_cq(64);
    std::unique_ptr<HostMemory> slab = device->alloc_memory(4096, "test slab");
    std::unique_ptr<MemoryRegion> region =
        device->reg_mr(slab->data(), slab->size(), access_local_write, &error);
    std::vector<std::unique_ptr<QueuePair>> pairs;

    QueuePair& open() {
      pairs.push_back(device->create_qp(*cq, {.send_wr_max = 16, .recv_wr_max = kReceives}, &error));
      for (std::uint32_t i = 0; i < kReceives; ++i) post_recv(pairs.size() - 1);
      return *pairs.back();
    }
    void post_recv(std::size_t pair) {
      const RecvWr wr{pair, {region->addr(), 64, region->lkey()}};
      ASSERT_EQ(pairs[pair]->post_recv({&wr, 1}), 1u);
    }
    bool send(std::size_t pair) {
      const Sge sge{region->addr() + 1024, 8, region->lkey()};
      SendWr wr;
      wr.sges = {&sge, 1};
      wr.signaled = true;
      Wc done[8];
      return pairs[pair]->post_send({&wr, 1}) == 1 && cq->poll(done) == 1;
    }
    std::uint64_t looked_at() const { return static_cast<shm::CompletionQueue&>(*cq).looked_at(); }
    /// Returns the queue pairs that have received something, in the order of their completions.
    std::vector<std::size_t> receive(std::size_t most = 64) {
      std::vector<Wc> done(most);
      done.resize(cq->poll(done));
      std::vector<std::size_t> from;
      for (const Wc& wc : done) {
        EXPECT_EQ(wc.status, WcStatus::success);
        from.push_back(wc.wr_id);
        post_recv(wc.wr_id);
      }
      return from;
    }
  };

  void connect(std::size_t pairs) {
    for (std::size_t i = 0; i < pairs; ++i) {
      QueuePair &a = from.open(), &b = to.open();
      ASSERT_EQ(a.connect(b.local_address()), "");
      ASSERT_EQ(b.connect(a.local_address()), "");
    }
    to.receive();
  }

  /// One queue pair has a single message, all others have as many as possible, and each poll returns at most
  /// four. Returns the largest number of completions before that single message, over all choices of the
  /// queue pair.
  std::size_t longest_wait_of_one_among(std::size_t pairs) {
    connect(pairs);
    for (int i = 0; i < 2'000; ++i) to.receive();
    std::size_t longest = 0;
    for (std::size_t lone = 0; lone < pairs; ++lone) {
      for (std::size_t pair = 0; pair < pairs; ++pair) {
        for (std::uint32_t i = 0; i < (pair == lone ? 1 : kReceives); ++i) EXPECT_TRUE(from.send(pair));
      }
      std::vector<std::size_t> order;
      for (std::vector<std::size_t> got; !(got = to.receive(4)).empty();)
        order.insert(order.end(), got.begin(), got.end());
      EXPECT_EQ(order.size(), (pairs - 1) * kReceives + 1);
      const auto at = std::find(order.begin(), order.end(), lone);
      longest = std::max(longest, static_cast<std::size_t>(at - order.begin()));
    }
    return longest;
  }

  Side from, to;
};

TEST_F(ShmMany, APollChecksTheActiveQueuePairs) {
  connect(500);
  constexpr std::uint64_t kPolls = 10'000;
  for (std::uint64_t i = 0; i < kPolls; ++i) {
    ASSERT_TRUE(from.send(321));
    ASSERT_EQ(to.receive(), std::vector<std::size_t>{321});
  }
  const std::uint64_t before = to.looked_at();
  for (std::uint64_t i = 0; i < kPolls; ++i) {
    ASSERT_TRUE(from.send(321));
    ASSERT_EQ(to.receive(), std::vector<std::size_t>{321});
  }
  // The poll looks at the queue pair itself and at a few that were already watched.
  EXPECT_LE(to.looked_at() - before, kPolls * 4);
}

TEST_F(ShmMany, AnEmptyPollChecksAFewQueuePairs) {
  connect(500);
  for (int i = 0; i < 2'000; ++i) to.receive();
  const std::uint64_t before = to.looked_at();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(to.receive().empty());
  EXPECT_LE(to.looked_at() - before, 400u);
}

TEST_F(ShmMany, EveryOneOfManyQueuePairsIsServed) {
  connect(200);
  for (int round = 0; round < 20; ++round) {
    std::vector<bool> heard(200);
    for (std::size_t i = 0; i < 200; ++i) ASSERT_TRUE(from.send(i));
    // Each poll returns ten messages; the rest wait for their turn.
    for (std::size_t count = 0; count < 200;) {
      const std::vector<std::size_t> got = to.receive(10);
      ASSERT_FALSE(got.empty());
      for (const std::size_t pair : got) heard[pair] = true;
      count += got.size();
    }
    EXPECT_EQ(std::count(heard.begin(), heard.end(), true), 200);
  }
}

/// Handling a completion may take milliseconds. A peer with a single message waits for at most an equal share
/// of each batch of a peer with many messages.
TEST_F(ShmMany, OneMessageWaitsForAPartOfABatchOfTheOtherOfTwo) {
  EXPECT_LE(longest_wait_of_one_among(2), 2u);
}
TEST_F(ShmMany, OneMessageWaitsForOneOfEachOfAFew) { EXPECT_LE(longest_wait_of_one_among(4), 3u); }
TEST_F(ShmMany, OneMessageWaitsForOneOfEachOfManyOnTheList) { EXPECT_LE(longest_wait_of_one_among(60), 60u); }

TEST_F(ShmMany, AnyOfThemWakesASleeper) {
  connect(100);
  for (int i = 0; i < 2'000; ++i) to.receive();
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(to.cq->arm());
    ASSERT_TRUE(from.send(i));
    pollfd bell{to.cq->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&bell, 1, 0), 1) << i;
    to.cq->acknowledge();
    ASSERT_EQ(to.receive(), std::vector<std::size_t>{i});
  }
}

TEST_F(ShmMany, AnAnnouncementKeepsTheQueueAwake) {
  connect(100);
  for (int i = 0; i < 2'000; ++i) to.receive();
  ASSERT_TRUE(from.send(99));
  EXPECT_FALSE(to.cq->arm());
  EXPECT_EQ(to.receive(), std::vector<std::size_t>{99});
  EXPECT_TRUE(to.cq->arm());
}

TEST_F(ShmMany, AMessageSentBeforeConnectIsFoundAfterIt) {
  connect(100);
  QueuePair &a = from.open(), &b = to.open();
  ASSERT_EQ(a.connect(b.local_address()), "");
  ASSERT_TRUE(from.send(100));
  EXPECT_TRUE(to.receive().empty());
  ASSERT_EQ(b.connect(a.local_address()), "");
  EXPECT_EQ(to.receive(), std::vector<std::size_t>{100});
}

TEST_F(ShmMany, AFaultOfAnUnwatchedQueuePairIsNoticed) {
  connect(100);
  for (int i = 0; i < 2'000; ++i) to.receive();
  from.pairs[77]->to_error();
  const Sge sge{from.region->addr(), 8, from.region->lkey()};
  SendWr wr;
  wr.opcode = Opcode::rdma_write;
  wr.sges = {&sge, 1};
  wr.rkey = 0x1234;
  ASSERT_EQ(from.pairs[78]->post_send({&wr, 1}), 1u);
  Wc done[8];
  ASSERT_EQ(to.cq->poll(done), kReceives);
  EXPECT_EQ(done[0].wr_id, 78u);
  EXPECT_EQ(done[0].status, WcStatus::wr_flush_err);
}

TEST_F(ShmMany, AQueuePairDestroyedWhileListedIsRemoved) {
  connect(100);
  for (int i = 0; i < 2'000; ++i) to.receive();
  for (std::size_t i = 50; i < 60; ++i) ASSERT_TRUE(from.send(i));
  EXPECT_FALSE(to.cq->arm());  // all queue pairs are listed now
  to.pairs[50].reset();
  to.pairs[55].reset();
  to.pairs[59].reset();
  EXPECT_EQ(to.receive(), (std::vector<std::size_t>{51, 52, 53, 54, 56, 57, 58}));
}

/// The peer was killed between writing its two words, and its index has been reused since.
TEST_F(ShmMany, AnUnfinishedAnnouncementDelaysNoOther) {
  connect(60);
  for (int i = 0; i < 2'000; ++i) to.receive();
  shm::Announcements& words = *static_cast<shm::Device&>(*to.device).announcements();
  for (shm::LongWord& word : words.queue_pairs) word.store(~std::uint64_t{0});
  ASSERT_TRUE(from.send(55));
  EXPECT_EQ(to.receive(), std::vector<std::size_t>{55});
}

TEST(ShmAnnouncements, WithoutAQueuePairAreIgnored) {
  ShmEnd end;
  shm::Announcements& words = *static_cast<shm::Device&>(*end.device).announcements();
  for (shm::LongWord& word : words.queue_pairs) word.store(~std::uint64_t{0});
  for (shm::LongWord& word : words.groups) word.store(~std::uint64_t{0});
  Wc none;
  EXPECT_EQ(end.cq->poll({&none, 1}), 0u);
  EXPECT_TRUE(end.cq->arm());
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
