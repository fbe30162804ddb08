// Tests the limits of a context: arena, registrations, memory windows and sessions. Each step may be refused
// with a reason, and all resources are released.
#include <gtest/gtest.h>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
using Violations = std::vector<std::string>;

// --- arena

TEST(ArenaExhausted, RequestsWaitInOrderAndGoOn) {
  PairOptions options = immediate();
  options.inflight_max = 8;
  Pair pair(options);
  const memory::BlockId hog = pair.server.context->arena().alloc(8 << 20);
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < 6; ++i)
    ids.push_back(pair.start({.request_bytes = 2000 + i, .answer = Answer::later}));
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 6u);
  pair.client.cancel(ids[2]);
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 5u);
  pair.server.context->arena().release(hog);
  pair.run();
  EXPECT_EQ(pair.server.unanswered(), 5u);
  for (const std::size_t i : {0u, 1u, 3u, 4u, 5u}) {
    ASSERT_TRUE(pair.server.answer());
    pair.run();
    EXPECT_TRUE(pair.call(ids[i]).answered()) << i;  // in the order in which they waited
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ArenaExhausted, AnswersWaitForTheirReplyBuffer) {
  Pair pair(immediate());
  const memory::BlockId hog = pair.client.context->arena().alloc(8 << 20);
  const std::uint64_t id = pair.start({.response_bytes = 5000}),
                      cancelled = pair.start({.response_bytes = 6000});
  pair.run();
  EXPECT_EQ(pair.client.context->memory_waiters(), 2u);
  EXPECT_FALSE(pair.call(id).ended());
  // The call has exposed no memory, so it ends at once.
  pair.client.cancel(cancelled);
  pair.step();
  EXPECT_TRUE(pair.call(cancelled).ended());
  pair.client.context->arena().release(hog);
  pair.run();
  EXPECT_TRUE(pair.call(id).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ArenaExhausted, ClosingASessionRemovesItsCallsFromTheQueue) {
  Pair pair(immediate());
  const memory::BlockId hog = pair.server.context->arena().alloc(8 << 20);
  for (int i = 0; i < 3; ++i) pair.start({.request_bytes = 2000});
  pair.run();
  EXPECT_EQ(pair.server.context->memory_waiters(), 3u);
  pair.at_server().close("over");
  EXPECT_EQ(pair.server.context->memory_waiters(), 0u);
  pair.server.context->arena().release(hog);
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(ArenaExhausted, ARequestThatCannotBeCopiedIsRefused) {
  RDMA_RPC_NEEDS_WINDOWS();  // staging memory is not part of the arena
  PairOptions options = immediate();
  options.context.mr_cache.max_bytes = 0;  // therefore every buffer must be copied
  Pair pair(options);
  EXPECT_TRUE(pair.complete({.request_bytes = 2000}).answered());
  const memory::BlockId hog = pair.client.context->arena().alloc(7 << 20);
  const CallRecord& call = pair.complete({.request_bytes = 2 << 20});
  EXPECT_EQ(call.kind, EvKind::failed);
  EXPECT_EQ(call.reason, Reason::no_memory);
  EXPECT_EQ(call.processed, Processed::no);
  pair.client.context->arena().release(hog);
  EXPECT_EQ(pair.finish(), Violations{});
}

// --- registrations and windows

TEST(Registrations, RefusedMeansCopied) {
  for (const auto& [name, change] :
       {std::pair<const char*, void (*)(PairOptions&)>{
            "no entries", [](PairOptions& o) { o.context.mr_cache.max_entries = 0; }},
        {"memory that cannot be exposed",
         [](PairOptions& o) { o.sim.capabilities.exposes_any_memory = false; }}}) {
    SCOPED_TRACE(name);
    PairOptions options = immediate();
    change(options);
    Pair pair(options);
    EXPECT_TRUE(pair.complete({.request_bytes = 5000, .request_gather_entries = 3, .response_bytes = 5000})
                    .answered());
    EXPECT_EQ(pair.client.context->mr_cache().counters().entries, 0u);
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(Registrations, AtTheSystemsLimitEndInACopyOrARefusal) {
  PairOptions options = immediate();
  options.sim.registered_bytes_max = 256 << 10;  // like RLIMIT_MEMLOCK
  options.context.arena = {.budget_bytes = 8 << 20, .chunk_bytes = 64 << 10};
  Pair pair(options);
  EXPECT_TRUE(pair.complete({.request_bytes = 20'000, .response_bytes = 20'000}).answered());
  // A call larger than everything that may be registered is refused with a reason, and the session continues.
  const CallRecord& call = pair.complete({.request_bytes = 1 << 20});
  EXPECT_EQ(call.kind, EvKind::failed);
  EXPECT_EQ(call.reason, has_windows() ? Reason::no_memory : Reason::registration);
  EXPECT_EQ(call.processed, Processed::no);
  EXPECT_TRUE(pair.complete({}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

/// Parts of a stream are used in order, so the second part must not use memory for which the first part
/// waits. Other calls may overtake them.
TEST(ArenaMemory, GoesToThePartsOfAStreamInOrder) {
  for (const bool requests : {true, false}) {
    SCOPED_TRACE(requests);
    Pair pair(immediate());
    Side& receiver = requests ? pair.server : pair.client;
    const auto spec = [&](std::size_t bytes, bool part) {
      CallSpec spec{.part = part};
      (requests ? spec.request_bytes : spec.response_bytes) = bytes;
      return spec;
    };
    const memory::BlockId hog = receiver.context->arena().alloc(7 << 20);
    const std::uint64_t first = pair.start(spec(2 << 20, true));
    pair.run();
    const std::uint64_t second = pair.start(spec(4000, true)), other = pair.start(spec(4000, false));
    pair.run();
    EXPECT_TRUE(pair.call(other).answered());
    EXPECT_FALSE(pair.call(first).ended() || pair.call(second).ended());
    EXPECT_EQ(receiver.context->memory_waiters(), 2u);
    receiver.context->arena().release(hog);
    pair.run();
    EXPECT_TRUE(pair.call(first).answered() && pair.call(second).answered());
    EXPECT_EQ(pair.finish(), Violations{});
  }
}

TEST(ArenaMemory, IsNotAllTakenByTheReplyBuffersThatPartsAreExpectedToNeed) {
  PairOptions options = immediate();
  options.inflight_max = 16;
  Pair pair(options);
  EXPECT_TRUE(pair.complete({.response_bytes = 256 << 10, .part = true}).answered());
  pair.client.release_blocks();
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 8; ++i) {
    ids.push_back(pair.start({.response_bytes = 256 << 10, .answer = Answer::later, .part = true}));
  }
  pair.run();
  EXPECT_LE(pair.client.context->arena().counters().bytes_leased, 1u << 20);
  EXPECT_GT(pair.client.context->stats().reply_buffers_predicted, 0u);
  while (pair.server.answer()) {
  }
  for (const std::uint64_t id : ids) {
    pair.run();
    EXPECT_TRUE(pair.call(id).answered());
    pair.client.release_blocks();
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

/// One call of the method had a large response. The memory that is expected for its next responses must leave
/// room for memory that is certainly needed. In this test, that is the copy of a request.
TEST(ArenaMemory, IsNotAllTakenByTheReplyBuffersThatCallsAreExpectedToNeed) {
  PairOptions options = immediate();
  options.inflight_max = 16;
  Pair pair(options);
  EXPECT_TRUE(pair.complete({.response_bytes = 1 << 20}).answered());
  pair.client.release_blocks();
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 12; ++i) {
    ids.push_back(pair.start({.response_bytes = 1 << 20, .answer = Answer::later}));
  }
  pair.run();
  memory::Arena& arena = pair.client.context->arena();
  EXPECT_GT(pair.client.context->stats().reply_buffers_predicted, 0u);
  EXPECT_LE(arena.counters().bytes_leased, arena.largest() / 2);
  const memory::BlockId request = arena.alloc(3 << 20, memory::Use::request);
  EXPECT_NE(request, memory::kNoBlock);
  arena.release(request);
  while (pair.server.answer()) {
  }
  for (const std::uint64_t id : ids) {
    pair.run();
    EXPECT_TRUE(pair.call(id).answered());
    pair.client.release_blocks();
  }
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(MessageLimit, BelowTheSlotSizeIsKeptByTheReceiverToo) {
  PairOptions options;
  options.max_message_bytes = 500;
  Pair pair(options);
  EXPECT_EQ(pair.complete({.request_bytes = 500, .response_bytes = 500}).status, 0u);
  const CallRecord& request = pair.complete({.request_bytes = 501});
  EXPECT_EQ(request.status, 8u);
  EXPECT_EQ(request.processed, Processed::no);
  for (const std::size_t given : {std::size_t{0}, std::size_t{600}}) {
    const CallRecord& response = pair.complete({.response_bytes = 501, .given_reply_buffer = given});
    EXPECT_EQ(response.kind, EvKind::failed);
    EXPECT_EQ(response.reason, Reason::too_large);
    EXPECT_EQ(response.processed, Processed::yes);
  }
  EXPECT_TRUE(pair.complete({}).answered());
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Windows, TheNthRefusedEndsThatCallOrItsReplyBuffer) {
  RDMA_RPC_NEEDS_WINDOWS();
  for (std::uint64_t nth = 1; nth <= 5; ++nth) {
    for (const fabric::SimMode mode : {fabric::SimMode::immediate, fabric::SimMode::scheduled}) {
      SCOPED_TRACE(nth);
      PairOptions options;
      options.sim.mode = mode;
      Pair pair(options);
      pair.world.fail_nth(fabric::SimResource::window, nth);
      const CallRecord& call = pair.complete({.request_bytes = 5000,
                                              .request_gather_entries = 3,
                                              .response_bytes = 5000,
                                              .given_reply_buffer = 5000});
      if (nth <= 3) {
        EXPECT_EQ(call.kind, EvKind::failed);
        EXPECT_EQ(call.reason, Reason::registration);
        EXPECT_EQ(call.processed, Processed::no);
      } else {
        EXPECT_TRUE(
            call.answered());  // the fourth window is for the reply buffer, which the server then requests
        EXPECT_EQ(pair.client.context->stats().reply_buffers_asked, nth == 4 ? 1u : 0u);
      }
      EXPECT_TRUE(pair.complete({.request_bytes = 2000, .response_bytes = 2000}).answered());
      EXPECT_EQ(pair.finish(), Violations{});
    }
  }
}

TEST(Opening, FailsCleanlyAtEveryResource) {
  using fabric::SimResource;
  for (const SimResource resource : {SimResource::memory, SimResource::region, SimResource::queue_pair,
                                     SimResource::completion_queue, SimResource::window}) {
    for (std::uint64_t nth = 1; nth <= 4; ++nth) {
      fabric::SimWorld world({.mode = fabric::SimMode::immediate});
      const std::shared_ptr<fabric::Device> device = world.open_device("device");
      world.fail_nth(resource, nth);
      {
        std::string error;
        const auto context = Context::open(device, PairOptions{}.context, &error);
        const std::int64_t session =
            context == nullptr ? -1 : context->create_session({true, 4, 1 << 20, 1 << 20}, &error);
        EXPECT_EQ(session < 0, world.counters().faults != 0);
        EXPECT_EQ(session < 0, !error.empty());
      }
      const fabric::DeviceCounters left = device->counters();
      EXPECT_EQ(left.queue_pairs + left.memory_regions + left.memory_windows + left.open_fds, 0u);
    }
  }
}

TEST(Opening, SaysWhichLimitWasExceeded) {
  struct {
    const char* text;
    void (*change)(fabric::SimOptions&, SessionOptions&);
  } const table[] = {
      {"inflightMax", [](fabric::SimOptions&, SessionOptions& s) { s.inflight_max = 0; }},
      {"inflightMax", [](fabric::SimOptions&, SessionOptions& s) { s.inflight_max = kCallSlotsMax + 1; }},
      {"callSlots", [](fabric::SimOptions&, SessionOptions& s) { s.call_slots = s.inflight_max - 1; }},
      {"callSlots", [](fabric::SimOptions&, SessionOptions& s) { s.call_slots = kCallSlotsMax + 1; }},
      {"stagingBytes",
       [](fabric::SimOptions& o, SessionOptions& s) {
         o.capabilities.windows = false;
         s.staging_bytes = 1023;
       }},
      {"inline", [](fabric::SimOptions& o, SessionOptions&) { o.capabilities.max_inline = 31; }},
      {"max_qp_wr", [](fabric::SimOptions& o, SessionOptions&) { o.capabilities.max_qp_wr = 63; }},
      {"registered_bytes_max",
       [](fabric::SimOptions& o, SessionOptions&) { o.registered_bytes_max = 40 << 10; }},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.text);
    fabric::SimOptions sim{.mode = fabric::SimMode::immediate};
    SessionOptions session{true, 8, 1 << 20, 1 << 20};
    row.change(sim, session);
    fabric::SimWorld world(sim);
    std::string error;
    const auto context = Context::open(world.open_device("device"), PairOptions{}.context, &error);
    if (context != nullptr) {
      EXPECT_LT(context->create_session(session, &error), 0);
      EXPECT_EQ(context->session_count(), 0u);
    }
    EXPECT_NE(error.find(row.text), std::string::npos) << error;
  }
}

TEST(Sessions, HaveNumbersThatAreNotSoonUsedAgain) {
  Pair pair(immediate());
  const std::uint32_t first = pair.client_session;
  pair.at_client().close("over");
  pair.at_server().close("over");
  pair.run();
  const std::uint32_t next = pair.client.open({true, 4, 1 << 20, 1 << 20});
  EXPECT_NE(next, first);
  EXPECT_EQ(pair.client.context->find(first), nullptr);
  pair.client.session(next).close("over");
  EXPECT_EQ(pair.finish(), Violations{});
}

TEST(Sessions, OfTwoHundredConnectsAndClosesLeaveNothing) {
  Pair pair(immediate());
  const fabric::DeviceCounters before = pair.client.device->counters();
  for (int i = 0; i < 200; ++i) {
    std::uint32_t a = 0, b = 0;
    connect(pair.client, a, pair.server, b, immediate());
    pair.client.start(a, {.request_bytes = 2000, .response_bytes = 2000});
    if (i % 2 == 0) pair.run();
    pair.client.session(a).close("over");
    pair.run();
    if (Session* open = pair.server.context->find(b)) open->close("over");
    pair.run();
  }
  EXPECT_EQ(pair.client.device->counters().queue_pairs, before.queue_pairs);
  EXPECT_EQ(pair.client.context->session_count(), 1u);
  EXPECT_EQ(pair.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test
