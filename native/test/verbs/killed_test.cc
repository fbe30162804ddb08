// The process at the other end is killed or stopped in each phase of a bulk call. The calls of the surviving
// process must end with the right code, nothing may be left open, and the next peer must be served. When a
// stopped peer continues, no byte of an ended call may change.
#include <gtest/gtest.h>
#include <signal.h>

#include <utility>

#include "verbs/devices/census.h"
#include "verbs/devices/hooked_device.h"
#include "verbs/peer/peer_process.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::Reason;

struct Case {
  const char* name;
  Phase phase;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }
std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }

constexpr std::size_t kBytes = 1 << 20;  // takes milliseconds

/// Returns a call with two windows for the request and one for the response.
CallSpec bulk_both_ways(bool later) {
  return {.request_bytes = kBytes,
          .request_gather_entries = 2,
          .response_bytes = kBytes,
          .given_reply_buffer = kBytes,
          .answer = later ? Answer::later : Answer::now};
}

class ServerEnds : public VerbsFaults, public testing::WithParamInterface<Case> {
 protected:
  /// Makes a call whose server halts in the phase.
  void halt(int number) {
    session_ = server_->connect_as_server_of(client_);
    const std::uint64_t first = client_.start(session_, {});
    wait([&] { return ledger_.at(first).answered(); }, "a first call");
    const Phase phase = GetParam().phase;
    if (phase == Phase::none) {
      server_->signal(number);
    } else {
      server_->ask({.order = Order::trip, .phase = phase, .signal = number}, {&client_});
    }
    bulk_ = client_.start(session_, bulk_both_ways(phase == Phase::handler));
    // The server does not answer, except in the phase of the handler.
    small_ = client_.start(session_, {.answer = phase == Phase::handler ? Answer::now : Answer::later});
    wait([&] { return server_->halted(); }, "the end of the server");
  }
  void wait(const std::function<bool()>& done, const char* what) { drive({&client_}, done, what); }
  bool ended() { return ledger_.at(bulk_).ended() && ledger_.at(small_).ended(); }

  /// The status codes of the two calls, if they were not answered before.
  void expect_ended(Reason reason) {
    for (const std::uint64_t id : {bulk_, small_}) {
      const CallRecord& call = ledger_.at(id);
      const Phase phase = GetParam().phase;
      if (call.answered() && (id == bulk_ ? phase == Phase::after_response : phase == Phase::handler))
        continue;
      EXPECT_EQ(call.kind, boundary::EvKind::failed);
      EXPECT_EQ(call.reason, reason);
    }
  }

  /// Another server takes over, and everything works at the end.
  void go_on() {
    PeerProcess next(kServerEnd);
    const std::uint32_t session = next.connect_as_server_of(client_);
    for (const CallSpec& spec : mixed_calls()) {
      const std::uint64_t id = client_.start(session, spec);
      wait([&] { return ledger_.at(id).ended(); }, "a call to the next server");
      EXPECT_TRUE(ledger_.at(id).answered()) << client_.why_down(session);
    }
    close_down(client_, {session, session_}, "client");
    next.quit({});
    audit(client_, "client");
    // This ledger does not contain the calls that the servers ran.
    for (std::uint64_t id = 1; id <= ledger_.size(); ++id) {
      if (ledger_.at(id).processed == boundary::Processed::yes) ledger_.at(id).began = 1;
    }
    EXPECT_EQ(ledger_.violations(), Violations{});
  }

  Ledger ledger_;
  Side client_{ledger_, open_device(kClientEnd), small_context()};
  std::unique_ptr<PeerProcess> server_ = std::make_unique<PeerProcess>(kServerEnd);
  std::uint32_t session_ = 0;
  std::uint64_t bulk_ = 0, small_ = 0;
};

TEST_P(ServerEnds, Killed) {
  halt(SIGKILL);
  // The runtime does the same when the sideband connection ends.
  if (Session* session = client_.context->find(session_)) session->close("the sideband connection ended");
  wait([&] { return ended(); }, "the end of both calls");
  expect_ended(Reason::session_lost);
  go_on();
}

TEST_P(ServerEnds, StoppedAndResumed) {
  halt(SIGSTOP);
  client_.cancel(bulk_, Reason::deadline);
  client_.cancel(small_, Reason::deadline);
  wait([&] { return ended(); }, "the end of both calls");
  expect_ended(Reason::deadline);
  // From here on the ledger watches the memory of the bulk call.
  server_->resume();
  const ReportMessage report = server_->ask(Order::report, {&client_});
  EXPECT_EQ(report.violations, 0u) << report.violation();
  drive_to_rest({&client_});
  EXPECT_FALSE(client_.is_down(session_)) << client_.why_down(session_);
  const std::uint64_t after = client_.start(session_, {.request_bytes = 5000, .response_bytes = 5000});
  wait([&] { return ledger_.at(after).ended(); }, "a call after the pause");
  EXPECT_TRUE(ledger_.at(after).answered()) << client_.why_down(session_);
  server_->quit({&client_});
  go_on();
}

INSTANTIATE_TEST_SUITE_P(In, ServerEnds,
                         testing::Values(Case{"BeforeTheRequest", Phase::none},
                                         Case{"BeforeTheRead", Phase::before_read},
                                         Case{"ReadUnderWay", Phase::read_under_way},
                                         Case{"TheHandler", Phase::handler},
                                         Case{"BeforeTheWrite", Phase::before_write},
                                         Case{"WriteUnderWay", Phase::write_under_way},
                                         Case{"BeforeTheResponse", Phase::before_response},
                                         Case{"AfterTheResponse", Phase::after_response}),
                         case_name);

class ClientEnds : public VerbsFaults, public testing::WithParamInterface<Case> {
 protected:
  ClientEnds() { expect_foreign_calls(foreign_calls_); }

  void SetUp() override {
    if (GetParam().phase == Phase::revoking && !server_.device->capabilities().windows)
      GTEST_SKIP() << "not run: the device has no windows, so nothing is revoked";
  }

  /// Makes a call whose client halts in the phase.
  void halt(int number) {
    session_ = client_->connect_as_client_of(server_);
    const Phase phase = GetParam().phase;
    const bool by_us = phase == Phase::handler || phase == Phase::write_under_way;
    if (phase == Phase::write_under_way) {
      hooks_->after = [this, number, done = false](const fabric::SendWr& wr) mutable {
        if (wr.opcode == fabric::Opcode::rdma_write && !std::exchange(done, true)) client_->signal(number);
      };
    }
    if (!by_us) client_->ask({.order = Order::trip, .phase = phase, .signal = number}, {&server_});
    // Small calls are answered; the bulk call comes last, so that only it reaches the phase.
    client_->ask({.order = Order::start, .spec = bulk_both_ways(phase == Phase::handler)}, {&server_});
    if (phase == Phase::handler) {
      wait([&] { return server_.unanswered() != 0; }, "a request");
      client_->signal(number);
      server_.answer();
    }
    wait([&] { return client_->halted(); }, "the end of the client");
  }
  void wait(const std::function<bool()>& done, const char* what) { drive({&server_}, done, what); }

  void go_on() {
    PeerProcess next(kClientEnd);
    const std::uint32_t session = next.connect_as_client_of(server_);
    for (const CallSpec& spec : mixed_calls()) next.ask({.order = Order::start, .spec = spec}, {&server_});
    wait([&] { return next.ask(Order::report, {&server_}).open == 0; }, "the calls of the next client");
    const ReportMessage report = next.ask(Order::report, {&server_});
    EXPECT_EQ(report.failed, 0u) << server_.why_down(session);
    next.quit({&server_});
    close_down(server_, {session, session_}, "server");
    audit(server_, "server");
    EXPECT_EQ(foreign_calls_.violations(false), Violations{});
  }

  Ledger foreign_calls_;
  std::shared_ptr<Hooks> hooks_ = std::make_shared<Hooks>();
  Side server_{foreign_calls_, std::make_shared<HookedDevice>(open_device(kServerEnd), hooks_),
               small_context()};
  std::unique_ptr<PeerProcess> client_ = std::make_unique<PeerProcess>(kClientEnd);
  std::uint32_t session_ = 0;
};

TEST_P(ClientEnds, Killed) {
  halt(SIGKILL);
  drive_to_rest({&server_});
  if (Session* session = server_.context->find(session_)) session->close("the sideband connection ended");
  wait([&] { return server_.is_down(session_); }, "the end of the session");
  EXPECT_EQ(server_.unanswered(), 0u);
  go_on();
}

TEST_P(ClientEnds, StoppedAndResumed) {
  halt(SIGSTOP);
  drive_to_rest({&server_});
  client_->resume();
  ReportMessage report;
  wait([&] { return (report = client_->ask(Order::report, {&server_})).open == 0; }, "the end of the call");
  EXPECT_EQ(report.violations, 0u) << report.violation();
  EXPECT_EQ(report.answered, 1u) << server_.why_down(session_);
  client_->quit({&server_});
  go_on();
}

INSTANTIATE_TEST_SUITE_P(In, ClientEnds,
                         testing::Values(Case{"BeforeTheRequest", Phase::before_request},
                                         Case{"AfterTheRequest", Phase::after_request},
                                         Case{"TheHandler", Phase::handler},
                                         Case{"WriteUnderWay", Phase::write_under_way},
                                         Case{"ItsRevocation", Phase::revoking}),
                         case_name);

}  // namespace
}  // namespace rdma_rpc::session::test
