// Tests memory of a call that its caller has cancelled. A server that was busy does its work later. The late
// READs and WRITEs of the server must harm neither the session nor a byte of that memory. The ledger fills
// the memory with a pattern when the caller is notified, and checks it when the server has certainly
// finished.
#include <gtest/gtest.h>

#include "verbs/devices/census.h"
#include "verbs/devices/ends.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::Reason;

struct Shape {
  const char* name;
  CallSpec spec;
  bool predicted = false;
};
void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

constexpr std::size_t kBytes = 500'000;

class LateServer : public VerbsFaults, public testing::WithParamInterface<Shape> {
 protected:
  void SetUp() override {
    link_ = ends_.connect();
    if (GetParam().predicted) ends_.complete(link_, GetParam().spec);
  }

  /// Runs the client alone until the call has ended.
  void give_up(std::uint64_t id, Reason reason) {
    ends_.client.cancel(id, reason);
    drive(
        {&ends_.client}, [&] { return ends_.call(id).ended(); }, "the end of a call that was given up");
    EXPECT_EQ(ends_.call(id).kind, boundary::EvKind::failed);
    EXPECT_EQ(ends_.call(id).reason, reason);
  }
  void let_the_server_work() {
    drive_to_rest({&ends_.client, &ends_.server});
    while (ends_.server.answer()) {
    }
    drive_to_rest({&ends_.client, &ends_.server});
  }
  void expect_the_next_call_works() {
    EXPECT_EQ(ends_.client.why_down(link_.client), "");
    EXPECT_EQ(ends_.server.why_down(link_.server), "");
    ends_.expect_works(link_);
    EXPECT_EQ(ends_.finish(), Violations{});
  }

  Ends ends_;
  Link link_;
};

TEST_P(LateServer, ThatHasNotSeenTheRequest) {
  const std::uint64_t id = ends_.start(link_, GetParam().spec);
  ends_.client.flush();
  give_up(id, Reason::deadline);
  let_the_server_work();
  expect_the_next_call_works();
}

TEST_P(LateServer, ThatAnswersAfterTheDeadline) {
  CallSpec spec = GetParam().spec;
  spec.answer = Answer::later;
  const std::uint64_t id = ends_.start(link_, spec);
  ends_.until([&] { return ends_.server.unanswered() != 0; }, "a request");
  give_up(id, Reason::deadline);
  ends_.server.answer();  // before the server has received the cancel
  let_the_server_work();
  expect_the_next_call_works();
}

INSTANTIATE_TEST_SUITE_P(
    Of, LateServer,
    testing::Values(Shape{"ABulkRequest", {.request_bytes = kBytes, .request_gather_entries = 3}},
                    Shape{"ARequestInTheArena", {.request_bytes = kBytes, .request_in_arena = true}},
                    Shape{"AGivenReplyBuffer", {.response_bytes = kBytes, .given_reply_buffer = kBytes}},
                    Shape{"APredictedReplyBuffer", {.response_bytes = kBytes, .method = 9}, true},
                    Shape{"BothWays",
                          {.request_bytes = kBytes, .response_bytes = kBytes, .given_reply_buffer = kBytes}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rdma_rpc::session::test
