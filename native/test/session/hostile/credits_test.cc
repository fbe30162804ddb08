// Tests a peer that sends frames beyond its credits. The tests cover every way in which a session stores
// received frames: in its own or in shared receives, read in place or copied first, sealed or unsealed.
// Frames are counted before anything is copied, so only that session ends.
#include <gtest/gtest.h>

#include <tuple>

#include "seal/libcrypto.h"
#include "session/hostile/hostile.h"

namespace rdma_rpc::session::test {
namespace {

struct ReceiveMode {
  const char* name;
  bool shared, copied, sealed;
};
constexpr ReceiveMode kReceives[] = {
    {"Own", false, false, false},        {"OwnCopied", false, true, false},
    {"OwnSealed", false, false, true},   {"OwnCopiedSealed", false, true, true},
    {"Shared", true, false, false},      {"SharedCopied", true, true, false},
    {"SharedSealed", true, false, true}, {"SharedCopiedSealed", true, true, true},
};

/// One session with a scripted peer, beside an honest pair. The peer returns no credit and continues to send.
struct Greedy {
  Greedy(const ReceiveMode& receives, bool victim_is_client)
      : scene(victim_is_client, options_of(receives), receives.shared, seal_of(receives)) {
    if (!receives.sealed) return;
    SealOptions peers = *seal_of(receives);
    std::swap(peers.send_frames, peers.receive_frames);
    std::string why;
    sealing = Sealing::open(peers, &why);
    EXPECT_NE(sealing, nullptr) << why;
  }
  static PairOptions options_of(const ReceiveMode& receives) {
    PairOptions options = immediate();
    options.credit_pool = receives.shared;
    options.sim.capabilities.max_srq_wr = receives.shared ? 2048 : 0;
    options.sim.capabilities.peers_keep_access = receives.copied;
    return options;
  }
  static std::optional<SealOptions> seal_of(const ReceiveMode& receives) {
    std::optional<SealOptions> seal;
    if (receives.sealed) seal.emplace().receive_frames.fill(std::byte{1});
    return seal;
  }

  Session& session() { return scene.victim.session(scene.session); }
  bool is_down() { return scene.victim.is_down(scene.session); }
  void send(FrameBytes frame) {
    if (sealing != nullptr) {
      const auto bytes = static_cast<std::uint32_t>(frame.bytes.size());
      frame.bytes.resize(bytes + seal::kTagBytes);
      sealing->seal_frame(frame.bytes.data(), bytes);
    }
    scene.peer.send(frame);
    scene.run();
  }

  Scene scene;
  std::unique_ptr<Sealing> sealing;
};

class FrameBeyondTheCredits : public testing::TestWithParam<std::tuple<ReceiveMode, bool>> {
 protected:
  void SetUp() override {
    if (receives().sealed && seal::ciphers().empty()) GTEST_SKIP() << "not run: " << seal::why_no_cipher();
  }
  ReceiveMode receives() const { return std::get<0>(GetParam()); }
  bool victim_is_client() const { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Of, FrameBeyondTheCredits,
                         testing::Combine(testing::ValuesIn(kReceives), testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<1>(info.param) ? "AServer" : "AClient") + "On" +
                                  std::get<0>(info.param).name;
                         });

/// Each frame is read at once, and its receive is reposted. In the end its credit cannot be returned, because
/// the peer returns no credits either.
TEST_P(FrameBeyondTheCredits, EndsTheSessionWhenFramesAreReadAtOnce) {
  Greedy greedy(receives(), victim_is_client());
  EXPECT_EQ(greedy.session().receives().shares(), receives().shared);
  int sent = 0;
  for (; sent < 2000 && !greedy.is_down(); ++sent) {
    greedy.send(FrameBytes(header(FrameType::credit, 0, 0)));
    while (greedy.scene.peer.receive()) {
    }
  }
  EXPECT_GT(sent, static_cast<int>(kInflight + kControlReceives))
      << "frames within the credits must be accepted";
  greedy.scene.expect_dies("frame beyond the credits");
}

/// Segments stay in their receives until their message is complete. A session with receives of its own has at
/// most as many receives as its peer has credits. With shared receives the device has many more.
TEST_P(FrameBeyondTheCredits, EndsTheSessionWhenFramesAreKept) {
  if (!receives().shared) return;
  Greedy greedy(receives(), victim_is_client());
  ASSERT_TRUE(greedy.session().receives().shares());
  for (std::uint32_t i = 0; i < kInflight + kControlReceives; ++i) {
    // The segment is longer than a short message, because the receive of a short message would be reposted at
    // once.
    greedy.send(FrameBytes(header(FrameType::segment, 0, 0)).pad(ShortMessages::kBytesMax));
    ASSERT_FALSE(greedy.is_down()) << i << ": " << greedy.scene.victim.why_down(greedy.scene.session);
  }
  greedy.send(FrameBytes(header(FrameType::segment, 0, 0)).pad(900));
  greedy.scene.expect_dies("frame beyond the credits");
}

/// A receive that is released twice must not be posted twice. Otherwise two frames would be written to it.
TEST_P(FrameBeyondTheCredits, AndAReceiveWithoutAFrameCannotBeReleased) {
  if (!receives().copied && !receives().sealed) return;  // there is no copy that could be released twice
  Greedy greedy(receives(), victim_is_client());
  greedy.session().recycle(ReceiveSlot::copy(0));
  EXPECT_EQ(greedy.session().receives().kept(), 0u);
  greedy.send(FrameBytes(header(FrameType::credit, 0, 0)));
  greedy.scene.expect_survives();
}

}  // namespace
}  // namespace rdma_rpc::session::test
