// Tests calls that end early: cancelled, or with their session closed, broken or killed at every single step
// of the call. After each call the oracle checks four things: the call has one last event, `processed` is
// correct, memory is unchanged, and no resource is left in use.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
using Violations = std::vector<std::string>;

struct Shape {
  const char* name;
  CallSpec spec;
  bool predicted = false;  ///< an earlier call teaches the predictor
};

const Shape kShapes[] = {
    {"Eager", {}, false},
    {"EagerAnsweredLater", {.answer = Answer::later}, false},
    {"BulkRequest", {.request_bytes = 5000, .request_gather_entries = 3}, false},
    {"BulkRequestOfThirtyGatherEntries",
     {.request_bytes = 60'000, .request_gather_entries = 30, .request_in_arena = true},
     false},
    {"BulkResponseAsked", {.response_bytes = 5000, .response_gather_entries = 2}, false},
    {"BulkResponsePredicted", {.response_bytes = 5000, .method = 9}, true},
    {"BulkResponsePredictedTooSmall", {.response_bytes = 70'000, .method = 9}, true},
    {"BulkResponsePredictedInVain", {.response_bytes = 5, .method = 9}, true},
    {"BulkBothWays", {.request_bytes = 5000, .request_gather_entries = 2, .response_bytes = 5000}, false},
    {"GivenReplyBuffer", {.request_bytes = 10, .response_bytes = 5000, .given_reply_buffer = 5000}, false},
    {"GivenReplyBufferBulkRequest",
     {.request_bytes = 3000, .response_bytes = 5000, .given_reply_buffer = 6000},
     false},
    {"GivenReplyBufferTooSmall",
     {.request_bytes = 10, .response_bytes = 9000, .given_reply_buffer = 4096},
     false},
    {"GivenReplyBufferAnsweredLater",
     {.request_bytes = 3000, .response_bytes = 5000, .given_reply_buffer = 6000, .answer = Answer::later},
     false},
    {"OfSeveralWorkRequests", {.request_bytes = 3 * kChunkBytes, .response_bytes = 3 * kChunkBytes}, false},
};

class Endings : public testing::TestWithParam<Shape> {
 protected:
  /// The pair with the call under test, and two other calls that only the end of the session may end.
  struct Run {
    explicit Run(const Shape& shape, std::uint64_t seed = 1, std::uint32_t inflight = 4)
        : pair(options(seed, inflight)) {
      if (shape.predicted) {
        pair.complete({.response_bytes = 6000, .method = 9});
      }
      other = pair.start({.response_bytes = 2500});
      id = pair.start(shape.spec);
      pair.client.flush();
    }
    static PairOptions options(std::uint64_t seed, std::uint32_t inflight) {
      PairOptions options = seeded(seed);
      options.inflight_max = inflight;
      return options;
    }
    /// Runs one step, and answers a waiting request after a few steps.
    bool step() {
      const bool moved = pair.step();
      if (pair.server.unanswered() == 0 || ++waited < 6) return moved;
      waited = 0;
      return pair.server.answer();
    }
    /// Runs `count` steps. Returns false when the call has ended.
    bool steps(int count) {
      for (int i = 0; i < count; ++i) step();
      return !pair.call(id).ended();
    }
    void settle() {
      for (int idle = 0; idle < 12; idle = step() ? 0 : idle + 1) {
      }
      while (pair.server.answer()) {
      }
      pair.run();
    }
    CallRecord& call() { return pair.call(id); }
    Pair pair;
    std::uint64_t id = 0, other = 0;
    int waited = 0;
  };

  /// Calls `interfere` after each possible number of steps, each time in a new world.
  template <class F>
  void at_every_step(F&& interfere) {
    const int seeds = GetParam().spec.request_bytes > 50'000 ? 1 : 3;
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(seeds); ++seed) {
      bool under_way = true;
      for (int n = 0; under_way; ++n) {
        ASSERT_LT(n, 3000);
        SCOPED_TRACE("seed " + std::to_string(seed) + ", after step " + std::to_string(n));
        Run run(GetParam(), seed);
        under_way = run.steps(n);
        interfere(run);
        run.settle();
        const Violations violations = run.pair.finish();
        ASSERT_EQ(violations, Violations{});
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(At, Endings, testing::ValuesIn(kShapes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Endings, UndisturbedTheCallSucceeds) {
  Run run(GetParam());
  run.settle();
  EXPECT_TRUE(run.call().answered());
  EXPECT_EQ(run.call().status, 0u);
  EXPECT_TRUE(run.pair.call(run.other).answered());
  EXPECT_EQ(run.pair.finish(), Violations{});
}

TEST_P(Endings, CancelledAtEveryStep) {
  at_every_step([](Run& run) {
    const bool ended = run.call().ended();
    run.pair.client.cancel(run.id, Reason::deadline);
    run.settle();
    EXPECT_TRUE(run.call().ended());
    // The end of one call must not end the other calls.
    EXPECT_TRUE(run.pair.call(run.other).answered());
    EXPECT_EQ(run.pair.at_client().error(), "");
    EXPECT_EQ(run.pair.at_server().error(), "");
    if (!ended && run.call().kind == EvKind::failed) {
      EXPECT_EQ(run.call().reason, Reason::deadline);
    }
    // The call slot can be used for another call.
    EXPECT_TRUE(run.pair.complete({}).answered());
    EXPECT_TRUE(run.pair.complete({.request_bytes = 2000, .response_bytes = 2000}).answered());
  });
}

TEST_P(Endings, ClosedByTheClientAtEveryStep) {
  at_every_step([](Run& run) { run.pair.at_client().close("enough"); });
}

TEST_P(Endings, ClosedByTheServerAtEveryStep) {
  at_every_step([](Run& run) { run.pair.at_server().close("enough"); });
}

TEST_P(Endings, CancelledAndThenClosedAtEveryStep) {
  at_every_step([](Run& run) {
    run.pair.client.cancel(run.id);
    for (int i = 0; i < 3; ++i) run.step();
    run.pair.at_client().close("enough");
  });
}

TEST_P(Endings, TheServerDiesAtEveryStep) {
  at_every_step([](Run& run) {
    run.pair.world.kill(*run.pair.server.device);
    run.settle();
    if (Session* client = run.pair.client.context->find(run.pair.client_session))
      client->close("the sideband connection ended");
    run.pair.run();
    EXPECT_TRUE(run.call().ended());
    run.pair.abandon_server();
  });
}

TEST_P(Endings, TheClientDiesAtEveryStep) {
  at_every_step([](Run& run) {
    run.pair.world.kill(*run.pair.client.device);
    run.settle();
    if (Session* server = run.pair.server.context->find(run.pair.server_session))
      server->close("the sideband connection ended");
    run.pair.run();
    run.pair.abandon_client();
  });
}

TEST_P(Endings, CompletionsOfTheClientHeldBackAtEveryStep) {
  at_every_step([](Run& run) {
    run.pair.hold_client(true);
    run.steps(40);
    run.pair.client.cancel(run.id);
    run.steps(5);
    run.pair.hold_client(false);
  });
}

TEST_P(Endings, CompletionsOfTheServerHeldBackAtEveryStep) {
  at_every_step([](Run& run) {
    run.pair.hold_server(true);
    run.steps(40);
    run.pair.client.cancel(run.id);
    run.steps(5);
    run.pair.hold_server(false);
  });
}

/// The nth work request of each kind fails with each status, on either side.
TEST_P(Endings, AnyOperationFailsWithAnyStatus) {
  using fabric::Opcode;
  using fabric::WcStatus;
  const Opcode opcodes[] = {Opcode::send,    Opcode::send_with_inv, Opcode::rdma_write, Opcode::rdma_read,
                            Opcode::bind_mw, Opcode::local_inv,     Opcode::recv};
  // The session treats all statuses alike, but the simulation treats these four differently.
  const WcStatus statuses[] = {WcStatus::general_err, WcStatus::rem_access_err, WcStatus::rem_inv_req_err,
                               WcStatus::retry_exc_err};
  const bool long_one = GetParam().spec.request_bytes > 50'000;
  for (const Opcode opcode : opcodes) {
    for (const WcStatus status : statuses) {
      if (long_one && status != WcStatus::general_err) continue;
      bool fired = true;
      for (std::uint64_t nth = 1; fired; ++nth) {
        SCOPED_TRACE("opcode " + std::to_string(static_cast<int>(opcode)) + ", " + fabric::to_string(status) +
                     ", number " + std::to_string(nth));
        ASSERT_LT(nth, 200u);
        Run run(GetParam());
        run.pair.world.fail({.opcode = opcode, .nth = nth, .status = status});
        run.settle();
        fired = run.pair.world.counters().faults != 0;
        EXPECT_TRUE(fired || run.call().answered());
        const Violations violations = run.pair.finish();
        ASSERT_EQ(violations, Violations{});
      }
    }
  }
}

/// JS stages calls while it reads the batch that contains the end of their session, so they are never sent.
TEST(TheLastBatch, CallsThatAreStagedInItAreNotSent) {
  for (const std::uint32_t calls : {1u, kSubmissionsMax + 1}) {
    SCOPED_TRACE(calls);
    PairOptions options;
    options.inflight_max = options.context.send_slots = 2 * kSubmissionsMax;
    Pair pair(options);
    pair.run();
    pair.at_client().close("enough");
    Context& client = *pair.client.context;
    for (int i = 0; client.progress(pair.world.now_ns()) == 0; ++i) {
      ASSERT_LT(i, 100);
      client.finish_turn();
      pair.world.step();
    }
    ASSERT_EQ(client.events()[boundary::ev::kind], static_cast<std::int32_t>(EvKind::session_down));
    client.begin_callback();
    for (std::uint32_t i = 0; i < calls; ++i) ASSERT_NE(pair.start({}), 0u);
    client.finish_turn();
    pair.run();
    for (std::uint64_t id = 1; id <= calls; ++id) {
      EXPECT_EQ(pair.call(id).kind, EvKind::failed);
      EXPECT_EQ(pair.call(id).reason, Reason::session_lost);
      EXPECT_EQ(pair.call(id).processed, Processed::no);
    }
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

/// A process is not scheduled for longer than its timeout. The response has already invalidated a window,
/// which must not be invalidated again.
TEST(Timeout, AResponseThatHasArrivedIsReadBeforeWindowsAreForced) {
  RDMA_RPC_NEEDS_WINDOWS();
  Pair pair;
  const std::uint64_t id =
      pair.start({.response_bytes = 3000, .given_reply_buffer = 4000, .answer = Answer::later});
  pair.run();
  pair.client.cancel(id, Reason::deadline);
  pair.client.flush();
  pair.server.answer();
  EXPECT_TRUE(run_world(pair.world, {&pair.server}));
  pair.world.advance(10 * kSettleGraceNs);
  pair.run();
  ASSERT_FALSE(pair.client.is_down(pair.client_session)) << pair.client.why_down(pair.client_session);
  EXPECT_TRUE(pair.call(id).ended());
  EXPECT_TRUE(pair.complete({}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test
