// Many connections end at once, as when a host dies. Each command takes a NIC some 100 us on the thread of
// the event loop, so one poll may send only a limited number of commands.
#include <algorithm>
#include <deque>

#include "nic/open.h"

namespace rdma_rpc::nic {
namespace {

constexpr std::uint32_t kSessions = 300, kWindows = 4;
constexpr std::uint64_t kCommandsAtOnce = 128;  // 13 ms

class ManyConnectionsThatEnd : public testing::Test {
 protected:
  using Window = std::unique_ptr<fabric::MemoryWindow>;

  ManyConnectionsThatEnd() {
    std::string error;
    region_ =
        device_->reg_mr(memory_->data(), 4096, fabric::access_local_write | fabric::access_mw_bind, &error);
    for (std::uint32_t i = 0; i < kSessions; ++i) connect_another();
  }

  void connect_another() {
    std::string error;
    fabric::QpOptions options{.send_wr_max = 16, .recv_wr_max = 4};
    auto client = device_->create_qp(*cq_, options, &error);
    options.active = false;
    auto server = device_->create_qp(*cq_, options, &error);
    ASSERT_NE(server, nullptr) << error;
    ASSERT_EQ(server->connect(client->local_address()), "");
    ASSERT_EQ(client->connect(server->local_address()), "");
    fabric::Wc none[1];
    while (client->state() != fabric::QpState::rts) cq_->poll({none, 1});
    clients_.push_back(std::move(client));
    servers_.push_back(std::move(server));
  }

  /// Binds the window. If `waits` is true, waits for the completion. Otherwise the bind is unsignaled.
  void bind(fabric::QueuePair& qp, fabric::MemoryWindow& window, bool waits = false) {
    fabric::SendWr wr;
    wr.signaled = waits;
    wr.opcode = fabric::Opcode::bind_mw;
    wr.bind = {&window, region_.get(), region_->addr(), 4096, fabric::access_remote_read};
    ASSERT_EQ(qp.post_send({&wr, 1}), 1u);
    fabric::Wc wc;
    if (!waits) return;
    ASSERT_EQ(cq_->poll({&wc, 1}), 1u);
    ASSERT_EQ(wc.status, fabric::WcStatus::success) << "the window was still bound";
  }
  /// Invalidates the key, and waits for the completion.
  void invalidate(fabric::QueuePair& qp, const fabric::MemoryWindow& window) {
    fabric::SendWr wr;
    wr.opcode = fabric::Opcode::local_inv;
    wr.signaled = true;
    wr.invalidate_rkey = window.rkey();
    ASSERT_EQ(qp.post_send({&wr, 1}), 1u);
    fabric::Wc wc;
    ASSERT_EQ(cq_->poll({&wc, 1}), 1u);
    ASSERT_EQ(wc.status, fabric::WcStatus::success);
  }
  Window& window() { return windows_.emplace_back(device_->alloc_mw()); }

  /// Ends all clients, and polls until nothing comes any more. Returns the largest number of commands in a
  /// poll.
  std::uint64_t end_all() {
    for (const auto& client : clients_) client->to_error();
    std::uint64_t most = 0;
    fabric::Wc wcs[32];
    for (std::uint32_t quiet = 0; quiet < 2 * kSessions;) {
      const std::uint64_t before = nic_.commands;
      quiet = cq_->poll(wcs) == 0 ? quiet + 1 : 0;
      most = std::max(most, nic_.commands - before);
    }
    return most;
  }

  Machine machine_;
  Nic& nic_ = machine_.add(capable());
  std::unique_ptr<fabric::Device> device_ = open(nic_);
  std::unique_ptr<fabric::HostMemory> memory_ = device_->alloc_memory(4096, "test");
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::CompletionQueue> cq_ = device_->create_cq(64);
  std::deque<std::unique_ptr<fabric::QueuePair>> clients_, servers_;
  std::deque<Window> windows_;
};

TEST_F(ManyConnectionsThatEnd, GiveFewCommandsAtOnce) {
  for (const auto& client : clients_) {
    for (std::uint32_t i = 0; i < kWindows; ++i) bind(*client, *window());
  }
  EXPECT_LE(end_all(), kCommandsAtOnce * (1 + 2 * kWindows) / 3);
  clients_.clear();
  EXPECT_EQ(nic_.live.queue_pairs, kSessions);
  for (const auto& window : windows_) bind(*servers_[0], *window, true);
}

TEST_F(ManyConnectionsThatEnd, LeaveWindowsAloneThatAreNotBound) {
  for (const auto& client : clients_) {
    for (std::uint32_t i = 0; i < kWindows; ++i) {
      bind(*client, *window());
      invalidate(*client, *windows_.back());
    }
  }
  const std::uint64_t before = nic_.commands;
  EXPECT_LE(end_all(), kCommandsAtOnce);
  clients_.clear();
  // Each queue pair is moved to ERR and destroyed.
  EXPECT_LE(nic_.commands - before, std::uint64_t{2} * kSessions);
  for (const auto& window : windows_) bind(*servers_[0], *window, true);
}

}  // namespace
}  // namespace rdma_rpc::nic
