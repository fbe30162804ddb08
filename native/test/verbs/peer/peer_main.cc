// Runs as the process of peer_process.h: one Side on one device, which executes the orders from its socket.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "verbs/devices/hooked_device.h"
#include "verbs/peer/peer_process.h"

namespace rdma_rpc::session::test {
namespace {

using fabric::Opcode;

/// Returns the type of the frame in a SEND, or 0 when the request has no frame.
int frame_of(const fabric::SendWr& wr) {
  if (wr.opcode != Opcode::send && wr.opcode != Opcode::send_with_inv) return 0;
  if (wr.sges.empty() || wr.sges[0].length == 0) return 0;
  std::uint8_t type = 0;
  std::memcpy(&type, reinterpret_cast<const void*>(wr.sges[0].addr), 1);
  return type;
}

bool is_before(Phase phase, const fabric::SendWr& wr) {
  switch (phase) {
    case Phase::before_request:
      return frame_of(wr) == static_cast<int>(wire::FrameType::request);
    case Phase::before_response:
      return frame_of(wr) == static_cast<int>(wire::FrameType::response);
    case Phase::before_read:
      return wr.opcode == Opcode::rdma_read;
    case Phase::before_write:
      return wr.opcode == Opcode::rdma_write;
    default:
      return false;
  }
}

bool is_after(Phase phase, const fabric::SendWr& wr) {
  switch (phase) {
    case Phase::after_request:
      return frame_of(wr) == static_cast<int>(wire::FrameType::request);
    case Phase::after_response:
      return frame_of(wr) == static_cast<int>(wire::FrameType::response);
    case Phase::read_under_way:
      return wr.opcode == Opcode::rdma_read;
    case Phase::asking:
      return frame_of(wr) == static_cast<int>(wire::FrameType::reply_buffer_request);
    case Phase::write_under_way:
      return wr.opcode == Opcode::rdma_write;
    case Phase::revoking:
      return wr.opcode == Opcode::local_inv;
    default:
      return false;
  }
}

class Peer {
 public:
  Peer(int socket, std::size_t end) : socket_(socket), side_(ledger_, hooked(end), small_context()) {}

  int run() {
    for (;;) {
      OrderMessage order{};
      const ssize_t got = ::recv(socket_, &order, sizeof order, MSG_DONTWAIT);
      if (got == 0) return 0;
      if (got == static_cast<ssize_t>(sizeof order)) {
        reply(carry_out(order));
        if (order.order == Order::quit) return 0;
      }
      if (!turn()) sleep();
    }
  }

 private:
  std::shared_ptr<fabric::Device> hooked(std::size_t end) {
    hooks_->before = [this](const fabric::SendWr& wr) {
      if (is_before(phase_, wr)) trip();
    };
    hooks_->after = [this](const fabric::SendWr& wr) {
      if (is_after(phase_, wr)) trip();
    };
    return std::make_shared<HookedDevice>(open_device(end), hooks_);
  }

  void trip() {
    phase_ = std::exchange(next_phase_, Phase::none);
    ::raise(signal_);
  }

  bool turn() {
    bool moved = side_.turn(real_now_ns());
    if (phase_ == Phase::handler && side_.unanswered() != 0) trip();
    while (phase_ == Phase::none && side_.answer()) moved = true;
    return moved;
  }

  void sleep() {
    pollfd fds[] = {{socket_, POLLIN, 0}, {side_.context->cq().fd(), POLLIN, 0}};
    ::poll(fds, 2, 5);
    side_.context->cq().acknowledge();
  }

  ReportMessage carry_out(const OrderMessage& order) {
    ReportMessage report;
    const std::span address(order.address.data(), order.address_bytes);
    switch (order.order) {
      case Order::open: {
        if (ledger_.size() == 0) begin_ledger(order);
        const std::uint32_t number = side_.open(small_session(order.client, order.inflight_max));
        if (number == 0) break;  // the report shows that the connection failed
        sessions_.push_back(number);
        const auto own = side_.session(number).local_address();
        report.address_bytes = static_cast<std::uint32_t>(own.size());
        std::copy(own.begin(), own.end(), report.address.begin());
        if (order.client) break;
        EXPECT_EQ(side_.session(number).connect(address), "");
        break;
      }
      case Order::connect:
        EXPECT_EQ(side_.session(sessions_.back()).connect(address), "");
        break;
      case Order::trip:
        phase_ = order.phase;
        next_phase_ = order.next_phase;
        signal_ = order.signal;
        break;
      case Order::start:
        for (const std::uint32_t number : sessions_) {
          for (std::uint32_t i = 0; i < order.count && !side_.is_down(number); ++i) start(number, order.spec);
        }
        break;
      case Order::report:
        drive_to_rest({&side_});
        break;
      case Order::quit:
        close_down(side_, sessions_, "peer");
        audit(side_, "peer");
        break;
    }
    count(report);
    return report;
  }

  /// Calls that start here have numbers that no other process uses. Calls that are served here may have any
  /// number.
  void begin_ledger(const OrderMessage& order) {
    first_own_ = order.client ? order.first_id : kForeignCalls;
    while (ledger_.size() < first_own_) ledger_.add({});
  }

  void start(std::uint32_t session, const CallSpec& spec) {
    std::uint64_t id = 0;
    drive(
        {&side_}, [&] { return (id = side_.start(session, spec)) != 0; }, "room for a call");
  }

  void count(ReportMessage& report) {
    for (std::uint64_t id = first_own_ + 1; id <= ledger_.size(); ++id) {
      CallRecord& call = ledger_.at(id);
      // This ledger does not contain the calls that the other process ran.
      if (call.processed == boundary::Processed::yes) call.began = 1;
      (call.answered() ? report.answered : call.ended() ? report.failed : report.open) += 1;
    }
    for (const std::uint32_t number : sessions_) {
      report.down += side_.is_down(number);
      report.up += side_.is_up(number) && !side_.is_down(number);
    }
    auto violations = ledger_.violations(false);
    if (testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed()) violations.push_back("an assertion");
    report.violations = static_cast<std::uint32_t>(violations.size());
    if (!violations.empty()) violations[0].copy(report.text.data(), report.text.size() - 1);
  }

  void reply(const ReportMessage& report) { ::send(socket_, &report, sizeof report, MSG_NOSIGNAL); }

  const int socket_;
  Ledger ledger_;
  std::shared_ptr<Hooks> hooks_ = std::make_shared<Hooks>();
  Phase phase_ = Phase::none, next_phase_ = Phase::none;
  int signal_ = 0;
  Side side_;
  std::vector<std::uint32_t> sessions_;
  std::uint64_t first_own_ = 0;
};

}  // namespace

int run_peer(int socket, std::size_t end) {
  // A test that crashes takes its processes with it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return Peer(socket, end).run();
}

}  // namespace rdma_rpc::session::test
