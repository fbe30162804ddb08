// Tests the numbers of requests on the wire. 0 follows 2^32 - 1, and acknowledgements work in the same way on
// both sides of the wrap. The tests use the queue alone, without a connection.
#include "fabric/tcp/queue/send_queue.h"

#include "fabric/tcp/device.h"
#include "fabric/tcp/raw_peer.h"

namespace rdma_rpc::fabric::test {
namespace {

constexpr std::uint32_t kBytes = 64;

class TcpSendQueue : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t first() const { return GetParam(); }
  void post(const SendWr& wr) {
    ASSERT_FALSE(queue.is_full());
    queue.post(wr);
    queue.begin();
    queue.started();
  }
  void send(std::uint64_t wr_id) { post(request(Opcode::send, wr_id, {})); }
  /// Checks that the next finished request has this id. Returns its status.
  WcStatus retired(std::uint64_t wr_id) {
    const tcp::SendSlot* slot = queue.retire();
    EXPECT_NE(slot, nullptr) << "request " << wr_id << " is not over";
    if (slot == nullptr) return WcStatus::general_err;
    EXPECT_EQ(slot->wr_id, wr_id);
    queue.freed(queue.retired());
    return slot->status;
  }

  TcpEnd end;
  tcp::SendQueue queue{static_cast<tcp::Device&>(*end.device), 8, first()};
};

TEST_P(TcpSendQueue, AnAckCountsForWhatHasBegunAndForNothingElse) {
  std::uint32_t number = first();
  for (std::uint64_t id = 0; id < 16; id += 2, number += 2) {
    send(id);
    send(id + 1);
    EXPECT_TRUE(queue.is_unacked());
    EXPECT_FALSE(queue.acked(number)) << "that is no news";
    EXPECT_FALSE(queue.acked(number + 3)) << "that request has not been made";
    EXPECT_FALSE(queue.acked(number + (1u << 31)));
    EXPECT_EQ(queue.retire(), nullptr);
    EXPECT_TRUE(queue.acked(number + 1));
    EXPECT_EQ(retired(id), WcStatus::success);
    EXPECT_EQ(queue.retire(), nullptr) << "only the first one was acknowledged";
    EXPECT_FALSE(queue.acked(number + 1)) << "that is no news";
    EXPECT_TRUE(queue.acked(number + 2));
    EXPECT_EQ(retired(id + 1), WcStatus::success);
    EXPECT_FALSE(queue.is_unacked());
  }
}

TEST_P(TcpSendQueue, AnAnswerToAReadAcknowledgesWhatIsBeforeIt) {
  std::uint32_t number = first();
  const Sge sge = end.sge(0, kBytes);
  for (std::uint64_t id = 0; id < 16; id += 2, number += 2) {
    send(id);
    post(request(Opcode::rdma_read, id + 1, {&sge, 1}, 0x1000, 7));
    ASSERT_NE(queue.reading(), nullptr);
    EXPECT_EQ(queue.reading()->number, number + 1);
    queue.reading()->moved = kBytes;
    queue.read_done();
    EXPECT_EQ(retired(id), WcStatus::success);
    EXPECT_EQ(retired(id + 1), WcStatus::success);
    EXPECT_TRUE(queue.acked(number + 2)) << "the READ's own ack has not come";
  }
}

TEST_P(TcpSendQueue, ARefusalIsForTheRequestOfThatNumberAndThoseBeforeItAreOver) {
  for (std::uint64_t id = 0; id < 3; ++id) send(id);
  EXPECT_FALSE(queue.refused(first() - 1, WcStatus::rem_access_err)) << "no request has that number";
  EXPECT_FALSE(queue.refused(first() + 3, WcStatus::rem_access_err)) << "that request has not been made";
  EXPECT_TRUE(queue.refused(first() + 1, WcStatus::rem_access_err));
  EXPECT_EQ(retired(0), WcStatus::success);
  EXPECT_EQ(retired(1), WcStatus::rem_access_err);
}

INSTANTIATE_TEST_SUITE_P(From, TcpSendQueue, ::testing::Values(0u, 0x7ffffff9u, 0xfffffff9u, 0xffffffffu),
                         [](const auto& info) { return "Number" + std::to_string(info.param); });

}  // namespace
}  // namespace rdma_rpc::fabric::test
