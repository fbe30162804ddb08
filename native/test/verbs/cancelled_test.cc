// A server is stopped in the middle of a call that its client has cancelled. In the first run it is stopped
// at a step of the transfer. In the second run it is stopped when it has received the cancel and is about to
// answer it. The client's caller is notified, the call slot is held, and the client continues with another
// server. When the stopped server continues too, no byte of the caller's memory changes, no session ends, and
// the call slot is released. (killed_test.cc has calls that are cancelled after the server has stopped.)
#include <gtest/gtest.h>
#include <signal.h>

#include "verbs/devices/census.h"
#include "verbs/peer/peer_process.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::Reason;

constexpr std::size_t kBytes = 1 << 20;

const CallSpec kRequest{.request_bytes = kBytes, .request_gather_entries = 2};
const CallSpec kHandled{.request_bytes = kBytes, .given_reply_buffer = kBytes, .answer = Answer::later};
const CallSpec kAsksForReplyBuffer{.response_bytes = kBytes};
const CallSpec kGivenReplyBuffer{.response_bytes = kBytes, .given_reply_buffer = kBytes};
/// This is more than a session writes in one iteration, so the session receives the cancel before the last
/// WRITE.
constexpr std::size_t kTurns = 2 * kPostedBytesPerTurn;
const CallSpec kLong{.response_bytes = kTurns, .given_reply_buffer = kTurns};

struct Case {
  const char* name;
  Phase phase;  ///< the server's phase when the client cancels
  CallSpec spec;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class ServerOfACancelledCall : public VerbsFaults, public testing::WithParamInterface<Case> {
 protected:
  void wait(const std::function<bool()>& done, const char* what) { drive({&client_}, done, what); }

  void until_it_stops_in(Phase phase, std::uint64_t& id) {
    if (phase == Phase::none) server_.signal(SIGSTOP);
    id = client_.start(session_, GetParam().spec);
    client_.flush();
    if (phase != Phase::none) wait([&] { return server_.halted(); }, "the first stop of the server");
    drive_to_rest({&client_});
  }
  /// The client does nothing in the meantime, because its calls would time out on a slow machine. Over tcp,
  /// the client itself serves READs and must run. The clock of the client is stopped instead.
  void let_it_hear_of_the_cancel() {
    server_.resume();
    const std::uint64_t now_ns = real_now_ns();
    drive(
        {},
        [&] {
          while (over_tcp() && client_.turn(now_ns)) {
          }
          return server_.halted();
        },
        "the second stop of the server");
  }
  void expect_works(std::uint32_t session) {
    for (const CallSpec& spec : mixed_calls()) {
      const std::uint64_t id = client_.start(session, spec);
      wait([&] { return ledger_.at(id).ended(); }, "a call");
      EXPECT_TRUE(ledger_.at(id).answered()) << client_.why_down(session);
      if (!ledger_.at(id).answered()) return;
    }
  }

  Ledger ledger_;
  Side client_{ledger_, open_device(kClientEnd), small_context()};
  PeerProcess server_{kServerEnd}, other_{kServerEnd};
  std::uint32_t session_ = server_.connect_as_server_of(client_);
};

TEST_P(ServerOfACancelledCall, IsStoppedUntilTheClientHasEndedIt) {
  const auto [name, phase, spec] = GetParam();
  server_.ask(phase == Phase::none
                  ? OrderMessage{.order = Order::trip, .phase = Phase::before_response, .signal = SIGSTOP}
                  : OrderMessage{.order = Order::trip,
                                 .phase = phase,
                                 .next_phase = Phase::before_response,
                                 .signal = SIGSTOP},
              {&client_});
  std::uint64_t id = 0;
  until_it_stops_in(phase, id);
  client_.cancel(id, Reason::cancelled);
  client_.flush();
  let_it_hear_of_the_cancel();
  ASSERT_FALSE(ledger_.at(id).ended());

  wait([&] { return ledger_.at(id).ended(); }, "the end of the call");
  // From here on the ledger watches the memory of the call.
  EXPECT_EQ(ledger_.at(id).kind, boundary::EvKind::failed);
  EXPECT_EQ(ledger_.at(id).reason, Reason::cancelled);
  EXPECT_FALSE(client_.is_down(session_)) << client_.why_down(session_);
  EXPECT_TRUE(ledger_.at(id).holds());
  const std::uint32_t other_session = other_.connect_as_server_of(client_);
  expect_works(other_session);

  server_.resume();
  const ReportMessage report = server_.ask(Order::report, {&client_});
  EXPECT_EQ(report.violations, 0u) << report.violation();
  drive_to_rest({&client_});
  EXPECT_FALSE(client_.is_down(session_)) << client_.why_down(session_);
  EXPECT_FALSE(ledger_.at(id).holds());
  expect_works(session_);
  expect_works(other_session);

  server_.quit({&client_});
  other_.quit({&client_});
  close_down(client_, {session_, other_session}, "client");
  audit(client_, "client");
  // This ledger does not contain the calls that the servers ran.
  for (std::uint64_t each = 1; each <= ledger_.size(); ++each) {
    if (ledger_.at(each).processed == boundary::Processed::yes) ledger_.at(each).began = 1;
  }
  EXPECT_EQ(ledger_.violations(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(Stopped, ServerOfACancelledCall,
                         testing::Values(Case{"BeforeItHasSeenTheRequest", Phase::none, kRequest},
                                         Case{"BeforeItReads", Phase::before_read, kRequest},
                                         Case{"WhileItReads", Phase::read_under_way, kRequest},
                                         Case{"WithTheRequestInItsHandler", Phase::handler, kHandled},
                                         Case{"WhenItHasAskedForAReplyBuffer", Phase::asking,
                                              kAsksForReplyBuffer},
                                         Case{"BeforeItWrites", Phase::before_write, kGivenReplyBuffer},
                                         Case{"WhileItWrites", Phase::write_under_way, kGivenReplyBuffer},
                                         Case{"WhileItWritesAtLength", Phase::write_under_way, kLong}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rdma_rpc::session::test
