// Implements the functions of the fabric suite's fixture. This file has no tests.
#include "fabric/suite/fabric_suite.h"

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace rdma_rpc::fabric::test {
namespace {

// Only a test that hangs reaches this limit; no test's result depends on how long something took.
constexpr auto kTimeout = std::chrono::seconds(20);

// Writes eight bytes of the pattern at a time, because some tests move 8 MiB and sanitizers make byte loops
// slow.
template <typename Word>
void each_word(std::uint64_t length, std::uint32_t seed, Word&& word) {
  for (std::uint64_t i = 0; i < length; i += 8) {
    const std::uint64_t value = (i + 1 + (std::uint64_t{seed} << 40)) * 0x9e3779b97f4a7c15;
    word(i, std::min<std::uint64_t>(8, length - i), value);
  }
}

bool all_equal(const std::byte* data, std::uint64_t length, std::uint8_t value) {
  return length == 0 || (data[0] == std::byte{value} && std::memcmp(data, data + 1, length - 1) == 0);
}

void expect_same(const DeviceCounters& now, const DeviceCounters& start, const char* who) {
  EXPECT_EQ(now.queue_pairs, start.queue_pairs) << who;
  EXPECT_EQ(now.receive_queues, start.receive_queues) << who;
  EXPECT_EQ(now.memory_regions, start.memory_regions) << who;
  EXPECT_EQ(now.memory_windows, start.memory_windows) << who;
  EXPECT_EQ(now.memory_bytes, start.memory_bytes) << who;
  EXPECT_EQ(now.open_fds, start.open_fds) << who;
}

}  // namespace

void Memory::fill(std::uint64_t offset, std::uint64_t length, std::uint32_t seed) const {
  each_word(length, seed, [to = data() + offset](std::uint64_t i, std::uint64_t bytes, std::uint64_t value) {
    std::memcpy(to + i, &value, bytes);
  });
}

bool Memory::holds(std::uint64_t offset, std::uint64_t length, std::uint32_t seed) const {
  bool same = true;
  each_word(length, seed, [&](std::uint64_t i, std::uint64_t bytes, std::uint64_t value) {
    same = same && std::memcmp(data() + offset + i, &value, bytes) == 0;
  });
  return same;
}

bool Memory::all(std::uint64_t offset, std::uint64_t length, std::uint8_t value) const {
  return all_equal(data() + offset, length, value);
}

bool Memory::untouched(std::uint8_t value) const { return all_equal(host->data(), host->size(), value); }

void FabricSuite::SetUp() {
  fabric_ = GetParam().make();
  client_.device = &fabric_->client();
  server_.device = &fabric_->server();
  start_client_ = client_.device->counters();
  start_server_ = server_.device->counters();
  for (Side* side : {&client_, &server_}) {
    side->cq = side->device->create_cq(4096);
    ASSERT_NE(side->cq, nullptr);
  }
  open_pair({.send_wr_max = 64, .recv_wr_max = 64});
}

void FabricSuite::TearDown() {
  more_.clear();
  for (Side* side : {&client_, &server_}) side->qp.reset();
  shared_receives_.reset();
  windows_.clear();
  memories_.clear();
  for (Side* side : {&client_, &server_}) side->cq.reset();
  expect_same(client_.device->counters(), start_client_, "client");
  expect_same(server_.device->counters(), start_server_, "server");
}

void FabricSuite::open_pair(const QpOptions& options) {
  for (Side* side : {&client_, &server_}) {
    side->qp = open_qp(*side, options);
    ASSERT_NE(side->qp, nullptr);
  }
}

std::unique_ptr<QueuePair> FabricSuite::open_qp(Side& side, QpOptions options) {
  std::string error;
  options.active = &side == &client_;
  auto qp = side.device->create_qp(*side.cq, options, &error);
  EXPECT_NE(qp, nullptr) << error;
  return qp;
}

void FabricSuite::recreate(const QpOptions& options) {
  for (Side* side : {&client_, &server_}) side->qp.reset();
  open_pair(options);
}

void FabricSuite::connect() { connect_both(*client_.qp, *server_.qp); }

void FabricSuite::connect_both(QueuePair& client, QueuePair& server) {
  const auto client_address = client.local_address();
  const auto server_address = address_of(server);
  ASSERT_EQ(client.connect(server_address), "");
  ASSERT_EQ(server.connect(client_address), "");
  ASSERT_TRUE(comes_up(client)) << client.error();
  ASSERT_TRUE(comes_up(server)) << server.error();
}

bool FabricSuite::connect_client_alone() {
  const std::string why = client_.qp->connect(address_of(*server_.qp));
  EXPECT_EQ(why, "");
  return client_.qp->state() == QpState::rts;
}

bool FabricSuite::comes_up(QueuePair& qp) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (qp.state() == QpState::rtr && std::chrono::steady_clock::now() < deadline) {
    if (poll_both() == 0) fabric_->pump();
  }
  return qp.state() == QpState::rts;
}

FabricSuite::Pair FabricSuite::another_pair(std::uint32_t tag) {
  QueuePair* made[2] = {};
  std::size_t i = 0;
  for (Side* side : {&client_, &server_}) {
    QpOptions options{.send_wr_max = 16, .recv_wr_max = 16};
    if (side == &server_ && shared_receives_ != nullptr) {
      options.recv_wr_max = 0;
      options.shared_receives = shared_receives_.get();
      options.tag = tag;
    }
    more_.push_back(open_qp(*side, options));
    made[i++] = more_.back().get();
  }
  connect_both(*made[0], *made[1]);
  return {made[0], made[1]};
}

ReceiveQueue& FabricSuite::share_receives(std::uint32_t receives) {
  std::string error;
  shared_receives_ = server_.device->create_receive_queue(*server_.cq, receives, &error);
  EXPECT_NE(shared_receives_, nullptr) << error;
  return *shared_receives_;
}

void FabricSuite::destroy(const QueuePair& qp) {
  std::erase_if(more_, [&qp](const auto& each) { return each.get() == &qp; });
}

Memory& FabricSuite::memory(Side& side, std::size_t bytes, std::uint32_t access) {
  Memory& memory = memories_.emplace_back();
  std::string error;
  memory.host = side.device->alloc_memory(bytes + 2 * Memory::kGuard, "suite");
  if (memory.host) memory.region = side.device->reg_mr(memory.data(), bytes, access, &error);
  if (!memory.region) {
    ADD_FAILURE() << "no memory for the test: " << error;
    std::abort();
  }
  return memory;
}

MemoryWindow& FabricSuite::window(Side& side) {
  windows_.push_back(side.device->alloc_mw());
  return *windows_.back();
}

SendWr FabricSuite::bind_wr(MemoryWindow& window, const MemoryRegion& region, std::uint64_t addr,
                            std::uint64_t length, std::uint32_t access) {
  SendWr wr = request(Opcode::bind_mw, 0xb1, {});
  wr.bind = {&window, &region, addr, length, access};
  return wr;
}

void FabricSuite::bind(Side& side, MemoryWindow& window, const Memory& memory, std::uint64_t offset,
                       std::uint64_t length, std::uint32_t access) {
  post(side, bind_wr(window, *memory.region, memory.addr(offset), length, access));
  expect(side, 0xb1);
}

void FabricSuite::post(QueuePair& qp, const SendWr& wr) { ASSERT_EQ(qp.post_send({&wr, 1}), 1u); }

void FabricSuite::post_recv(Side& side, std::uint64_t wr_id, const Sge& sge) {
  const RecvWr wr{wr_id, sge};
  ASSERT_EQ(side.qp->post_recv({&wr, 1}), 1u);
}

std::size_t FabricSuite::poll_both() {
  std::size_t total = 0;
  for (Side* side : {&client_, &server_}) {
    Wc batch[16];
    const std::size_t count = side->cq->poll(batch);
    side->completions.insert(side->completions.end(), batch, batch + count);
    total += count;
  }
  return total;
}

Wc FabricSuite::next(Side& side) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (side.completions.empty()) {
    if (poll_both() > 0) continue;
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "no completion on the " << (&side == &client_ ? "client" : "server") << " side";
      return {.wr_id = ~std::uint64_t{0}, .status = WcStatus::general_err};
    }
    fabric_->pump();
  }
  const Wc wc = side.completions.front();
  side.completions.pop_front();
  return wc;
}

Wc FabricSuite::expect(Side& side, std::uint64_t wr_id, WcStatus status) {
  const Wc wc = next(side);
  EXPECT_EQ(wc.wr_id, wr_id);
  if (status == WcStatus::success || caps().names_refusals) {
    EXPECT_EQ(wc.status, status) << "wr_id " << wc.wr_id;
  } else {
    EXPECT_NE(wc.status, WcStatus::success) << "wr_id " << wc.wr_id;
  }
  return wc;
}

Wc FabricSuite::expect_error(Side& side, std::uint64_t wr_id) {
  const Wc wc = next(side);
  EXPECT_EQ(wc.wr_id, wr_id);
  EXPECT_NE(wc.status, WcStatus::success);
  return wc;
}

bool FabricSuite::refused_with(const Wc& wc, WcStatus status) const {
  // Since Linux 6.4, soft-RoCE reports a request that it refuses as flushed.
  const bool forgets = !caps().exact_windows && wc.status == WcStatus::wr_flush_err;
  return wc.status == status || forgets || (!caps().names_refusals && wc.status != WcStatus::success);
}

bool FabricSuite::arrived(const std::function<bool()>& there) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (!there()) {
    if (caps().names_refusals || std::chrono::steady_clock::now() > deadline) return false;
    fabric_->pump();
  }
  return true;
}

void FabricSuite::settle() {
  for (int idle = 0; idle < fabric_->idle_rounds();) {
    fabric_->pump();
    idle = poll_both() > 0 ? 0 : idle + 1;
  }
}

void FabricSuite::expect_both_dead() {
  settle();
  // The end of a connection may be reported by an event instead of a completion.
  for (Side* side : {&client_, &server_}) side->cq->acknowledge();
  settle();
  for (Side* side : {&client_, &server_}) {
    EXPECT_EQ(side->qp->state(), QpState::err);
    for (const Wc& wc : side->completions) {
      EXPECT_NE(wc.status, WcStatus::success) << "wr_id " << wc.wr_id;
      EXPECT_TRUE(wc.status == WcStatus::wr_flush_err || !caps().names_refusals) << to_string(wc.status);
    }
    side->completions.clear();
  }
}

bool FabricSuite::is_readable(Side& side) const {
  pollfd descriptor{side.cq->fd(), POLLIN, 0};
  return ::poll(&descriptor, 1, 0) == 1;
}

bool FabricSuite::becomes_readable(Side& side) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (!is_readable(side)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    fabric_->pump();
  }
  return true;
}

void FabricSuite::expect_quiet() {
  settle();
  for (Side* side : {&client_, &server_}) {
    for (const Wc& wc : side->completions) {
      // This is the end of the connection, which the other side may report.
      if (wc.status == WcStatus::wr_flush_err && !caps().names_refusals) continue;
      ADD_FAILURE() << "unexpected completion on the " << (side == &client_ ? "client" : "server")
                    << " side: wr_id " << wc.wr_id << " " << to_string(wc.status);
    }
    side->completions.clear();
  }
}

}  // namespace rdma_rpc::fabric::test
