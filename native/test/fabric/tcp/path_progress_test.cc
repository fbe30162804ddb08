// Tests the counters of a connection's bytes, by which a client tells a slow network from a proxy that drops
// what it acknowledges.
#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint32_t kLarge = 60'000;
constexpr int kSends = 40;

/// A queue pair that has sent more than its socket and that of its peer take.
struct Upload {
  Upload() : end(false, 64 << 10), peer(end) {
    peer.connect(4096);
    const Sge sge = end.sge(0, kLarge);
    for (int i = 0; i < kSends; ++i) end.post(request(Opcode::send, 1, {&sge, 1}));
    end.poll();
  }
  PathProgress progress() { return end.qp->path_progress().value_or(PathProgress{}); }
  TcpEnd end;
  RawPeer peer;
};

TEST(TcpPathProgress, BytesThatThePeerReadsAreAcknowledgedWhileOthersArePending) {
  Upload upload;
  PathProgress before = upload.progress();
  EXPECT_GT(before.pending, 0u);
  std::vector<std::byte> some(kLarge);
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(upload.end.until([&] {
      ::recv(upload.peer.fd(), some.data(), some.size(), MSG_DONTWAIT);
      return upload.progress().acknowledged > before.acknowledged;
    }));
    before = upload.progress();
    EXPECT_GT(before.pending, 0u);
  }
}

TEST(TcpPathProgress, NothingIsPendingWhenThePeersKernelHasAllBytes) {
  Upload upload;
  std::vector<std::byte> some(kLarge);
  const std::uint64_t all = kSends * (sizeof(tcp::Header) + kLarge);
  ASSERT_TRUE(upload.end.until([&] {
    ::recv(upload.peer.fd(), some.data(), some.size(), MSG_DONTWAIT);
    return upload.progress().acknowledged >= all;
  }));
  EXPECT_EQ(upload.progress().pending, 0u);
}

TEST(TcpPathProgress, BytesOfThePeerAreReceivedBeforeTheyAreRead) {
  Upload upload;
  const std::uint64_t before = upload.progress().received;
  const std::byte some[1]{};
  ASSERT_EQ(::send(upload.peer.fd(), some, sizeof some, 0), 1);
  EXPECT_TRUE(wait_until([&] { return upload.progress().received == before + sizeof some; }));
}

TEST(TcpPathProgress, AQueuePairWithoutASocketHasNone) {
  TcpEnd end;
  EXPECT_FALSE(end.qp->path_progress());
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
