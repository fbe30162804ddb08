// Tests a tcp server whose process is stopped. The server acknowledges nothing, because on tcp the server's
// CPU sends the acknowledgements. Calls that are cancelled in this time still end soon after their deadline,
// with every kind of lent memory. When the server continues, the session continues, too.
#include <gtest/gtest.h>

#include "fabric/tcp/tcp.h"
#include "verbs/devices/ends.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::Reason;

std::shared_ptr<fabric::Device> open_tcp() {
  std::string error;
  std::shared_ptr<fabric::Device> device = fabric::open_tcp_device({}, &error);
  EXPECT_NE(device, nullptr) << error;
  return device;
}

class TcpStopped : public testing::Test {
 protected:
  /// Lets this much time pass, while only the client runs.
  void without_server(std::uint64_t ns) {
    for (std::uint64_t passed = 0; passed < ns; passed += 1'000'000) {
      now_ns += 1'000'000;
      while (pair.client.turn(now_ns)) {
      }
    }
  }
  /// Runs both sides until the server is fetching requests.
  void until_fetching() {
    pair.until([&] { return pair.server.context->arena().counters().blocks_leased != 0; }, "a READ");
    now_ns = real_now_ns();
  }
  void go_on() {
    while (pair.server.answer()) {
    }
    pair.until(
        [&] {
          while (pair.server.answer()) {
          }
          return pair.ledger.open() == 0 && pair.client.context->stats().calls_pending_release == 0;
        },
        "the end of all calls");
  }

  Ends pair{open_tcp(), open_tcp()};
  std::uint64_t now_ns = 0;
};

/// The call lends its request. The READs of the request have not begun, are in progress, or have completed.
TEST_F(TcpStopped, CallersThatHaveLentTheirRequestLearnOfTheirDeadlineAtOnce) {
  const Link link = pair.connect();
  const std::uint64_t other = pair.start(link, {.answer = Answer::later});
  std::vector<std::uint64_t> lent;
  for (const std::size_t bytes : {std::size_t{8} << 20, std::size_t{2000}, std::size_t{4} << 20})
    lent.push_back(pair.start(link, {.request_bytes = bytes, .answer = Answer::later}));
  until_fetching();
  for (const std::uint64_t id : lent) pair.client.cancel(id, Reason::deadline);
  without_server(kSettleGraceNs + 5'000'000);
  for (const std::uint64_t id : lent) EXPECT_EQ(pair.call(id).reason, Reason::deadline) << id;
  without_server(60'000'000'000);
  EXPECT_EQ(pair.why_down(link), "");
  go_on();
  EXPECT_TRUE(pair.call(other).answered());
  pair.expect_works(link);
  EXPECT_EQ(pair.finish(), Violations{});
}

/// The server may write a response to this memory. The server is stopped before it has begun, or in the
/// middle of a WRITE. Bytes that the server sends when it continues must not be written. The ledger watches
/// the memory that the application has got back.
TEST_F(TcpStopped, MemoryForAnswersIsFreeAtTheDeadline) {
  const Link link = pair.connect();
  constexpr std::size_t kBytes = 4 << 20;
  std::vector<std::uint64_t> asked;
  const auto blocks = [&] { return pair.client.context->arena().counters().blocks_leased; };
  const std::uint64_t given =
      pair.start(link, {.response_bytes = kBytes, .given_reply_buffer = kBytes, .answer = Answer::later});
  // The first call binds a window first, so it would be sent after the following calls.
  pair.until([&] { return pair.server.unanswered() == 1; }, "the first request");
  for (int i = 0; i < 3; ++i)
    asked.push_back(pair.start(link, {.response_bytes = kBytes, .answer = Answer::later}));
  pair.until([&] { return pair.server.unanswered() == 4; }, "the requests");
  while (pair.server.unanswered() > 1) ASSERT_TRUE(pair.server.answer(1));
  pair.until([&] { return blocks() == 4; }, "memory for each answer");
  pair.until([&] { return pair.server.context->stats().bulk_writes != 0; }, "a WRITE");
  now_ns = real_now_ns();
  pair.client.cancel(given, Reason::deadline);
  for (const std::uint64_t id : asked) pair.client.cancel(id, Reason::deadline);
  without_server(kSettleGraceNs + 5'000'000);
  EXPECT_EQ(pair.call(given).reason, Reason::deadline);
  EXPECT_EQ(pair.call(given).held, boundary::pending_slot) << "the application keeps its buffer";
  for (const std::uint64_t id : asked) EXPECT_EQ(pair.call(id).reason, Reason::deadline) << id;
  EXPECT_EQ(blocks(), 1u) << "only the application's own block";
  EXPECT_EQ(pair.client.context->stats().calls_pending_release, 4u);
  go_on();
  EXPECT_EQ(pair.why_down(link), "");
  pair.expect_works(link);
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Calls that wait for a credit have windows, too, although they were never sent. The invalidation of these
/// windows completes only after everything that the server has not acknowledged.
TEST_F(TcpStopped, MoreLargeRequestsThanCreditsEndAtOnce) {
  const Link link = pair.connect(4, 40);
  std::vector<std::uint64_t> large;
  for (std::size_t i = 0; i < 40; ++i) {
    const std::size_t reply_buffer = i % 3 == 0 ? 4096 : 0;
    large.push_back(pair.start(
        link, {.request_bytes = 2000, .given_reply_buffer = reply_buffer, .answer = Answer::later}));
    ASSERT_NE(large.back(), 0u) << i;
  }
  now_ns = real_now_ns();
  without_server(5'000'000);
  for (const std::uint64_t id : large) pair.client.cancel(id, Reason::deadline);
  without_server(kSettleGraceNs + 5'000'000);
  std::size_t unsent = 0;
  for (const std::uint64_t id : large) {
    EXPECT_EQ(pair.call(id).reason, Reason::deadline) << id;
    if (pair.call(id).ended() && pair.call(id).processed == boundary::Processed::no) ++unsent;
  }
  EXPECT_GE(unsent, large.size() - 20);
  EXPECT_LT(unsent, large.size());
  without_server(60'000'000'000);
  EXPECT_EQ(pair.why_down(link), "");
  go_on();
  pair.expect_works(link);
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test
