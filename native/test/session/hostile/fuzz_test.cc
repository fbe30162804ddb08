// Tests a hostile peer that sends random frames, from a seed.
#include <gtest/gtest.h>

#include <random>

#include "session/hostile/hostile.h"

namespace rdma_rpc::session::test {
namespace {

/// Creates frames that are partly correct, so that they are processed further than random bytes.
FrameBytes random_frame(std::mt19937_64& random, std::uint32_t key, std::uint64_t addr) {
  const auto any = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t call = wire::call_word(any(kInflight + (any(20) == 0)), any(4));
  const auto type = static_cast<FrameType>(any(40) == 0 ? any(256) : 1 + any(7));
  const std::uint32_t rkey = any(3) == 0 ? static_cast<std::uint32_t>(random()) : key;
  const std::uint32_t length = any(4) == 0 ? static_cast<std::uint32_t>(random()) : 1 + any(4000);
  std::uint32_t method = any(3);
  std::uint8_t flags = 0;
  const bool gather_entries = type == FrameType::request && any(3) == 0;
  const bool reply_buffer = (type == FrameType::request || type == FrameType::reply_buffer) && any(2) == 0;
  const bool written = type == FrameType::response && any(3) == 0;
  if (type == FrameType::request) method = 7;
  if (type == FrameType::cancel) method = any(2) == 0 ? 1 : 4;
  if (type == FrameType::credit || type == FrameType::reply_buffer || type == FrameType::segment) method = 0;
  if (type == FrameType::reply_buffer_request) method = length;
  if (gather_entries) flags |= wire::has_gather_list;
  if (reply_buffer) flags |= wire::has_reply_buffer;
  if (written) flags |= wire::written;
  if (any(60) == 0) flags ^= static_cast<std::uint8_t>(1u << any(8));
  FrameBytes frame({static_cast<std::uint8_t>(type), flags,
                    static_cast<std::uint16_t>(any(8) == 0 ? any(3) : 0),
                    type == FrameType::credit ? 0 : call, method, 0});
  if (reply_buffer) frame.add(wire::ReplyBuffer{addr, length, rkey});
  if (gather_entries) {
    const std::uint32_t count = 1 + any(3);
    frame.add(wire::GatherListHead{length * count + (any(10) == 0), count});
    // One of the gather entries is often inline.
    const std::uint32_t inlined = any(2) == 0 ? any(count + 1) : count;
    for (std::uint32_t i = 0; i < count; ++i)
      frame.add(i == inlined ? wire::GatherEntry{any(20) == 0 ? addr : 0, length, 0}
                             : wire::GatherEntry{addr, length, rkey});
    if (inlined < count) frame.pad(any(10) == 0 ? any(64) : std::min(length, 500u));
  }
  if (written) frame.add(wire::Written{1 + any(9000), 0});
  if (!gather_entries && !written &&
      (type == FrameType::request || type == FrameType::response || type == FrameType::segment))
    frame.pad(any(64));
  return frame;
}

TEST(HostileFuzz, ThousandsOfFramesHurtOnlyTheirSession) {
  std::size_t frames = 0, deaths = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    PairOptions options = seeded(seed, seed % 2 == 0 ? immediate() : PairOptions{});
    options.sim.capabilities.peers_keep_access = seed % 3 == 0;
    Pair pair(options);
    for (int life = 0; life < 5; ++life) {
      const bool victim_is_client = random() % 2 == 0;
      Side& victim = victim_is_client ? pair.client : pair.server;
      const std::uint32_t session = victim.open({victim_is_client, kInflight, 4 << 20, 4 << 20});
      ScriptedPeer peer(pair.world, kInflight, 1024);
      peer.connect(victim.session(session));
      const std::uint32_t key =
          peer.expose(0, 4096, random() % 2 == 0 ? fabric::access_remote_read : fabric::access_remote_write);
      std::vector<std::uint64_t> ids;
      for (int i = 0; i < 60 && peer.alive() && !victim.is_down(session); ++i, ++frames) {
        if (victim_is_client && random() % 3 == 0) {
          const std::uint64_t id = victim.start(
              session,
              {.request_bytes = random() % 5000, .given_reply_buffer = random() % 3 == 0 ? 4096u : 0u});
          if (id != 0) ids.push_back(id);
        }
        if (!ids.empty() && random() % 6 == 0) victim.cancel(ids[random() % ids.size()]);
        const auto invalidate = random() % 50 == 0 ? static_cast<std::uint32_t>(random()) : 0u;
        peer.send(random_frame(random, key, peer.address(0)), invalidate);
        for (int steps = static_cast<int>(random() % 6); steps > 0; --steps) pair.step();
        while (peer.receive()) {
        }
      }
      if (Session* open = victim.context->find(session)) open->close("enough");
      pair.run();
      deaths += victim.is_down(session);
      for (const std::uint64_t id : ids) {
        // The result may be anything, because such a server may send anything, but the call must end exactly
        // once.
        EXPECT_EQ(pair.call(id).last_events, 1);
        pair.call(id).processed = Processed::maybe;
      }
    }
    EXPECT_TRUE(pair.complete({.request_bytes = 2000, .response_bytes = 2000}).answered());
    ASSERT_EQ(pair.finish(), Violations{});
  }
  EXPECT_EQ(deaths, 1000u);
  EXPECT_GT(frames, 3'500u);
}

}  // namespace
}  // namespace rdma_rpc::session::test
