// Opens two devices with queue pairs that are not connected yet, for tests of connections. The tests use the
// devices of the fabric suite (suite_test.cc).
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "fabric/verbs/address/address.h"
#include "fabric/verbs/devices.h"

namespace rdma_rpc::fabric::test {

using verbs::Address;

inline constexpr std::uint32_t kLimitMs = 1500;
inline constexpr auto kTimeout = std::chrono::seconds(20);

/// A queue pair with a completion queue of its own, on one of two devices.
struct End {
  Device* device = nullptr;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<QueuePair> qp;

  void close() {
    qp.reset();
    cq.reset();
  }
};

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why = open(VerbsConnect::cm, VerbsConnect::cm);
    if (!why.empty()) GTEST_SKIP() << "not run: " << why;
  }

  void TearDown() override {
    for (std::size_t i = 0; i < 2; ++i) {
      if (devices_[i] == nullptr) continue;
      EXPECT_EQ(devices_[i]->counters().queue_pairs, start_[i].queue_pairs);
      EXPECT_EQ(devices_[i]->counters().open_fds, start_[i].open_fds);
    }
  }

  std::string open(VerbsConnect client, VerbsConnect server, std::uint32_t limit_ms = kLimitMs) {
    std::string error;
    for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
      VerbsOptions options = test_options(which, which == 0 ? client : server);
      options.connect_timeout_ms = limit_ms;
      devices_[which] = open_verbs_device(options, &error);
      if (devices_[which] == nullptr) return error;
      start_[which] = devices_[which]->counters();
    }
    return "";
  }

  End make(bool active) {
    End end;
    end.device = devices_[active ? 0 : 1].get();
    end.cq = end.device->create_cq(64);
    end.qp = make_qp(end, active);
    return end;
  }
  static std::unique_ptr<QueuePair> make_qp(End& end, bool active) {
    std::string error;
    auto qp = end.device->create_qp(*end.cq, {.send_wr_max = 8, .recv_wr_max = 8, .active = active}, &error);
    EXPECT_NE(qp, nullptr) << error;
    return qp;
  }
  End client() { return make(true); }
  End server() { return make(false); }

  static void turn(std::initializer_list<End*> ends) {
    Wc batch[16];
    for (End* end : ends) {
      if (end->cq != nullptr) end->cq->poll(batch);
    }
    ::poll(nullptr, 0, 1);
  }

  /// Polls until no attempt is in progress.
  static void finish(std::initializer_list<End*> ends) {
    for (End* end : ends) finish(*end->qp, ends);
  }
  /// Polls both until that attempt is no longer in progress.
  static void finish(const QueuePair& one, std::initializer_list<End*> all) {
    const auto deadline = std::chrono::steady_clock::now() + kTimeout;
    while (one.state() == QpState::rtr && std::chrono::steady_clock::now() < deadline) turn(all);
  }

  static void expect_up(End& a, End& b) {
    finish({&a, &b});
    EXPECT_EQ(a.qp->state(), QpState::rts) << a.qp->error();
    EXPECT_EQ(b.qp->state(), QpState::rts) << b.qp->error();
  }

  /// Checks that the attempt begins, and fails for a reason that contains `text`.
  static void expect_failure(End& end, std::span<const std::byte> address, const std::string& text) {
    ASSERT_EQ(end.qp->connect(address), "");
    finish({&end});
    EXPECT_EQ(end.qp->state(), QpState::err);
    EXPECT_NE(end.qp->error().find(text), std::string::npos) << end.qp->error();
  }

  /// After that, each side knows the other's hardware address.
  void make_neighbours() {
    End one = client(), other = server();
    ASSERT_EQ(other.qp->connect(one.qp->local_address()), "");
    ASSERT_EQ(one.qp->connect(other.qp->local_address()), "");
    expect_up(one, other);
  }

  static Address read(const QueuePair& qp) {
    Address address, anyone;
    verbs::Way way{};
    const auto bytes = qp.local_address();
    // decode() sets these fields before it compares any.
    static_cast<void>(verbs::decode(bytes, anyone, &address, &way));
    return address;
  }

  std::unique_ptr<Device> devices_[2];
  DeviceCounters start_[2];
};

}  // namespace rdma_rpc::fabric::test
