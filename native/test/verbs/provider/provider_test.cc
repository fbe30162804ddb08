// Tests events that a device reports by itself, and work that it no longer does. The tests cover every kind
// of asynchronous event, a completion queue that overruns, and requests that never complete. The affected
// sessions end with the reason and settle their calls. Other sessions continue, and the process survives and
// opens new sessions.
#include <gtest/gtest.h>
#include <poll.h>

#include "verbs/devices/census.h"
#include "verbs/devices/ends.h"
#include "verbs/devices/wire.h"
#include "verbs/provider/provider.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::Reason;

class ScriptedDevice : public VerbsFaults {
 protected:
  std::shared_ptr<fabric::Device> client_ = open_device(kClientEnd), server_ = open_device(kServerEnd);
  Provider provider_;
  /// Returns the client's device, once the ends exist. Every second queue pair belongs to its sessions.
  ibv_context* client_context() { return provider_.script().contexts[0]; }
  ibv_qp* client_qp(std::size_t session) { return provider_.script().queue_pairs[2 * session]; }
};

/// Ends a session, as the runtime does when the sideband connection ends.
void close(Side& side, std::uint32_t session) {
  if (Session* open = side.context->find(session)) open->close("the sideband connection ended");
}

enum class Of { port, queue_pair, other_queue_pair, completion_queue };
enum class Ends_ { nothing, one_session, all_sessions, the_device };

struct Reported {
  const char* name;
  ibv_event_type type;
  Of of = Of::port;
  Ends_ ends = Ends_::nothing;
  /// A part of the error of the sessions that end. The default is the name of the event.
  std::string why = std::string("(IBV_EVENT_") + name + ")";
};
void PrintTo(const Reported& each, std::ostream* out) { *out << each.name; }

class Reports : public ScriptedDevice, public testing::WithParamInterface<Reported> {};

TEST_P(Reports, EndNoMoreThanTheyMust) {
  const Reported& reported = GetParam();
  {
    Ends ends(client_, server_);
    const Link links[] = {ends.connect(), ends.connect()};
    std::uint64_t ids[2];
    for (int i = 0; i < 2; ++i)
      ids[i] = ends.start(links[i], {.request_bytes = 5000, .answer = Answer::later});
    ends.until([&] { return ends.server.unanswered() == 2; }, "two requests");

    ibv_qp* qp = reported.of == Of::queue_pair         ? client_qp(0)
                 : reported.of == Of::other_queue_pair ? provider_.script().queue_pairs[1]
                                                       : nullptr;
    ibv_cq* cq = reported.of == Of::completion_queue ? client_qp(0)->send_cq : nullptr;
    provider_.report(reported.type, client_context(), qp, cq);
    ends.until([&] { return provider_.script().reports.empty(); }, "the report to be read");
    const int lost = reported.ends == Ends_::nothing ? 0 : reported.ends == Ends_::one_session ? 1 : 2;
    for (int i = 0; i < lost; ++i) {
      ends.until([&] { return ends.client.is_down(links[i].client); }, "the end of a session");
      EXPECT_NE(ends.client.why_down(links[i].client).find(reported.why), std::string::npos)
          << ends.client.why_down(links[i].client);
      EXPECT_EQ(ends.call(ids[i]).reason, Reason::session_lost);
      EXPECT_EQ(ends.call(ids[i]).processed, boundary::Processed::maybe);
      close(ends.server, links[i].server);
    }
    drive_to_rest({&ends.client, &ends.server});
    while (ends.server.answer()) {
    }
    for (int i = lost; i < 2; ++i) {
      ends.until([&] { return ends.call(ids[i]).ended(); }, "the answer of a session that goes on");
      EXPECT_TRUE(ends.call(ids[i]).answered()) << ends.client.why_down(links[i].client);
      ends.expect_works(links[i]);
    }
    if (reported.ends != Ends_::the_device) ends.expect_works(ends.connect());
    EXPECT_EQ(ends.finish(), Violations{});
  }
  Ends ends;
  ends.expect_works(ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(
    Of, Reports,
    testing::Values(Reported{"DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL, Of::port, Ends_::the_device},
                    Reported{"CQ_ERR", IBV_EVENT_CQ_ERR, Of::completion_queue, Ends_::all_sessions},
                    Reported{"QP_FATAL", IBV_EVENT_QP_FATAL, Of::queue_pair, Ends_::one_session},
                    Reported{"QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR, Of::queue_pair, Ends_::one_session},
                    Reported{"QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR, Of::queue_pair, Ends_::one_session},
                    Reported{"QP_FATAL_of_another_device", IBV_EVENT_QP_FATAL, Of::other_queue_pair},
                    Reported{"COMM_EST", IBV_EVENT_COMM_EST, Of::queue_pair},
                    Reported{"SQ_DRAINED", IBV_EVENT_SQ_DRAINED, Of::queue_pair},
                    Reported{"PATH_MIG", IBV_EVENT_PATH_MIG, Of::queue_pair},
                    Reported{"PATH_MIG_ERR", IBV_EVENT_PATH_MIG_ERR, Of::queue_pair},
                    // A device reports this event only for a queue pair that it has ended.
                    Reported{"QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED, Of::queue_pair,
                             Ends_::one_session, "has ended the queue pair and does not say why"},
                    Reported{"PORT_ERR", IBV_EVENT_PORT_ERR}, Reported{"PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE},
                    Reported{"LID_CHANGE", IBV_EVENT_LID_CHANGE},
                    Reported{"PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE},
                    Reported{"SM_CHANGE", IBV_EVENT_SM_CHANGE},
                    Reported{"CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER},
                    Reported{"GID_CHANGE", IBV_EVENT_GID_CHANGE}),
    [](const auto& info) { return std::string(info.param.name); });

using CompletionQueueOverrun = ScriptedDevice;

TEST_F(CompletionQueueOverrun, EndsItsSessionsAndNewOnesGetAnother) {
  if (guest_link() == "siw") GTEST_SKIP() << "not run: this device loses completions without a word";
  constexpr std::uint32_t kCalls = 60;
  provider_.script().next_cq_entries = 4;
  Ends ends(client_, server_);
  // The session has receives of its own, because a side that polls nothing would get no further credits.
  const Link link = ends.connect(kCalls, 0, true);
  // The call is answered while the client does not poll.
  for (std::uint32_t i = 0; i < kCalls; ++i) ASSERT_NE(ends.start(link, {}), 0u);
  ends.client.flush();
  drive(
      {&ends.server}, [&] { return ends.call(kCalls).began != 0; }, "the last request");
  drive_to_rest({&ends.server});
  ends.until([&] { return ends.client.is_down(link.client); }, "the end of the session");
  const std::string why = ends.client.why_down(link.client);
  // The reason depends on what is noticed first. On a slow machine the server's retries may be over.
  EXPECT_TRUE(why.find("IBV_EVENT_CQ_ERR") != std::string::npos ||
              why.find("has overrun") != std::string::npos ||
              why.find("the peer has closed the connection") != std::string::npos)
      << why;
  for (std::uint64_t id = 1; id <= kCalls; ++id) EXPECT_TRUE(ends.call(id).ended());
  ends.expect_works(ends.connect(kCalls, 0, true));
  EXPECT_EQ(provider_.script().contexts.size(), 3u);
  EXPECT_EQ(ends.finish(), Violations{});
}

class Watchdog : public ScriptedDevice {
 protected:
  /// With this length, the limit is 1.6 s, which is long for a working device even on a slow machine.
  static constexpr long kSecondNs = 100'000'000;
  Watchdog() { provider_.script().second_ns = kSecondNs; }

  /// Sleeps until the side is woken; nothing else checks the queue. The limit is a number of the watchdog's
  /// checks, which does not depend on the speed of the machine.
  void sleep_until_down(Side& side, std::uint32_t session) {
    constexpr int kHangMs = 30'000;
    constexpr std::uint32_t kChecksMax = 500;
    const std::uint32_t before = provider_.script().seconds;
    while (!side.is_down(session)) {
      if (side.turn(real_now_ns())) continue;
      pollfd fd{side.context->cq().fd(), POLLIN, 0};
      if (::poll(&fd, 1, kHangMs) == 0) {
        ADD_FAILURE() << "nothing has woken the sleeper";
        return;
      }
      if (provider_.script().seconds - before > kChecksMax) {
        ADD_FAILURE() << "the watchdog has not ended the session in " << kChecksMax << " checks";
        return;
      }
      side.context->cq().acknowledge();
    }
  }

  void expect_given_up(Ends& ends, const Link& link, std::uint64_t id) {
    provider_.script().second_ns = kSecondNs / 20;  // the device is not going to work
    sleep_until_down(ends.client, link.client);
    provider_.script().second_ns = kSecondNs;
    const std::string why = ends.client.why_down(link.client);
    EXPECT_NE(why.find("has not carried out a request for"), std::string::npos) << why;
    EXPECT_EQ(ends.call(id).reason, Reason::session_lost);
  }
};

TEST_F(Watchdog, EndsRequestsThatTheDeviceNeverCompletes) {
  for (const CallSpec& spec : mixed_calls()) {
    Ends ends(client_, server_);
    const Link link = ends.connect();
    provider_.script().mute = client_context();
    const std::uint64_t id = ends.start(link, spec);
    expect_given_up(ends, link, id);
    provider_.script().mute = nullptr;
    close(ends.server, link.server);
    ends.expect_works(ends.connect());
    EXPECT_EQ(ends.finish(), Violations{});
  }
}

TEST_F(Watchdog, EndsRequestsThatAreSentAgainForEver) {
  if (guest_link() != "rxe") GTEST_SKIP() << "not run: soft-RoCE alone takes a retry count of 7 for endless";
  constexpr std::uint8_t kEndless = 7;
  Ends ends(open_device(kClientEnd, kEndless), open_device(kServerEnd, kEndless));
  const Link link = ends.connect();
  {
    const Weather weather("loss 100%");
    const std::uint64_t id = ends.start(link, {});
    expect_given_up(ends, link, id);
    close(ends.server, link.server);
    ends.until([&] { return ends.server.is_down(link.server); }, "the end of the session at the server");
  }
  ends.expect_works(ends.connect());
  EXPECT_EQ(ends.finish(), Violations{});
}

TEST_F(Watchdog, RingsAgainWhenTheDeviceMissedTheDoorbell) {
  if (guest_link() != "rxe") GTEST_SKIP() << "not run: only soft-RoCE misses a doorbell";
  Script& script = provider_.script();
  Ends ends(client_, server_);
  const Link link = ends.connect();
  for (ibv_qp* qp : {script.queue_pairs[0], script.queue_pairs[1]}) {
    script.dozes = qp;
    for (const CallSpec& spec : mixed_calls()) {
      // Each doorbell of the call is missed in turn, until the call has no more doorbells.
      bool missed = true;
      for (std::uint32_t nth = 0; missed && !HasFailure(); ++nth) {
        const std::uint32_t before = script.doorbells_missed;
        script.doorbells_before = nth;
        EXPECT_TRUE(ends.complete(link, spec).answered()) << ends.why_down(link);
        missed = script.doorbells_missed != before;
      }
    }
  }
  EXPECT_EQ(ends.finish(), Violations{});
}

/// Both ends are on one device, so that a single watchdog serves both and its checks can be counted.
class WatchdogOfOneDevice : public Watchdog {
 protected:
  Ends ends_{client_, client_};

  ~WatchdogOfOneDevice() override {
    // (The counters of the device would include both sides.)
    ends_.finish();
  }

  /// Returns the checks of the client's or the server's requests in which an empty WRITE was posted while
  /// nothing completes. (On a busy host, the request before it may also miss a doorbell. That doorbell is not
  /// counted here.)
  std::vector<std::uint32_t> looks_with_a_ring(const CallSpec& spec, bool at_server) {
    Script& script = provider_.script();
    const Link link = ends_.connect();
    const ibv_qp* qp = script.queue_pairs[script.queue_pairs.size() - (at_server ? 1 : 2)];
    const std::uint64_t id = ends_.start(link, spec);
    if (at_server) ends_.until([&] { return ends_.server.unanswered() != 0; }, "the request");
    script.mute = qp->context;
    const std::uint32_t before = script.seconds;
    if (at_server) ends_.server.answer();
    script.second_ns = kSecondNs / 20;
    sleep_until_down(at_server ? ends_.server : ends_.client, at_server ? link.server : link.client);
    script.second_ns = kSecondNs;
    script.mute = nullptr;
    close(at_server ? ends_.client : ends_.server, at_server ? link.client : link.server);
    ends_.until([&] { return ends_.call(id).ended(); }, "the end of the call");
    std::vector<std::uint32_t> looks = script.empty_writes[qp];
    std::erase_if(looks, [&](std::uint32_t look) { return look < before; });
    for (std::uint32_t& look : looks) look -= before;
    return looks;
  }
};

TEST_F(WatchdogOfOneDevice, RingsTwiceAtMostAndLaterBehindALongWrite) {
  if (guest_link() != "rxe") GTEST_SKIP() << "not run: only soft-RoCE misses a doorbell";
  constexpr std::uint32_t kHalfOfTheLimit = 8;
  // The first empty WRITE asks for the acknowledgement of an unsignaled packet.
  const auto behind_short = looks_with_a_ring({}, false);
  ASSERT_EQ(behind_short.size(), 3u) << testing::PrintToString(behind_short);
  EXPECT_LT(behind_short.back(), kHalfOfTheLimit);
  const CallSpec long_write{.response_bytes = 50'000, .given_reply_buffer = 60'000, .answer = Answer::later};
  const auto behind_long = looks_with_a_ring(long_write, true);
  ASSERT_EQ(behind_long.size(), 2u) << testing::PrintToString(behind_long);
  EXPECT_GE(behind_long.front(), kHalfOfTheLimit);
}

TEST_F(Watchdog, NudgesAPeerThatMayHaveForgottenTheFirstMessage) {
  if (guest_link() != "siw") GTEST_SKIP() << "not run: only soft-iWARP forgets a first message";
  Script& script = provider_.script();
  for (const CallSpec& spec : mixed_calls()) {
    Ends ends(client_, server_);
    const Link link = ends.connect();
    script.dozes = client_qp(script.doorbells_missed);
    script.doorbells_before = 0;
    const std::uint32_t before = script.doorbells_missed;
    EXPECT_TRUE(ends.complete(link, spec).answered()) << ends.why_down(link);
    EXPECT_EQ(script.doorbells_missed, before + 1);
    EXPECT_EQ(ends.finish(), Violations{});
  }
}

TEST_F(WatchdogOfOneDevice, NudgesASilentPeerFiveTimesAndAPeerThatAnsweredNoMore) {
  if (guest_link() != "siw") GTEST_SKIP() << "not run: only soft-iWARP forgets a first message";
  Script& script = provider_.script();
  const Link silent = ends_.connect(), speaks = ends_.connect();
  ends_.expect_works(speaks);
  const std::size_t nudged = script.empty_writes[client_qp(1)].size();
  const std::uint64_t id = ends_.start(silent, {.answer = Answer::later});
  // The watchdog still runs after the fifth WRITE, because each request gives it something to check.
  constexpr std::uint32_t kLooks = 24;
  const std::uint32_t from = script.seconds;
  while (script.seconds - from < kLooks && !HasFailure()) ends_.complete(speaks, {});
  const std::vector<std::uint32_t> nudges = script.empty_writes[client_qp(0)];
  ASSERT_EQ(nudges.size(), 5u) << testing::PrintToString(nudges);
  for (std::uint32_t i = 1; i < nudges.size(); ++i) EXPECT_EQ(nudges[i] - nudges[0], (1u << i) - 1);
  EXPECT_EQ(script.empty_writes[client_qp(1)].size(), nudged);
  ends_.server.answer();
  ends_.until([&] { return ends_.call(id).ended(); }, "the answer");
  EXPECT_TRUE(ends_.call(id).answered()) << ends_.client.why_down(silent.client);
}

TEST_F(Watchdog, IgnoresAnIdleSession) {
  Ends ends(client_, server_);
  const Link link = ends.connect();
  ends.expect_works(link);
  // The answer to this call takes longer than any request may take, but no request is outstanding during that
  // time.
  const std::uint64_t id = ends.start(link, {.answer = Answer::later});
  ends.until([&] { return ends.server.unanswered() != 0; }, "the request");
  drive_to_rest({&ends.client, &ends.server});
  ends.server.answer();
  ends.until([&] { return ends.call(id).ended(); }, "the answer");
  EXPECT_TRUE(ends.call(id).answered()) << ends.client.why_down(link.client);
  EXPECT_EQ(ends.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test
