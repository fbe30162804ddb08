// See pair.h.
#include "session/sides/pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "session/sides/audit.h"

namespace rdma_rpc::session::test {

namespace {
constexpr std::uint64_t kTickNs = 5'000'000;
/// Together these ticks are more than twice the timeout of a cancelled call. After that time the state cannot
/// change any more.
constexpr int kIdleTicks = 30;
constexpr int kStepsMax = 2'000'000;
}  // namespace

fabric::Capabilities iwarp_device() {
  fabric::Capabilities capabilities = fabric::sim_capabilities();
  capabilities.windows = false;
  capabilities.immediate = false;
  capabilities.max_sge = 6;
  capabilities.max_sge_read = 1;
  capabilities.max_inline = 80;
  capabilities.read_sink_needs_remote_write = true;
  capabilities.active_side_sends_first = true;
  capabilities.one_page_read_max = 32;
  return capabilities;
}

namespace {
bool is_tested(std::string_view what) {
  const char* given = std::getenv("RDMA_RPC_SIM");
  return given != nullptr && given == what;
}
}  // namespace

fabric::Capabilities tested_device() {
  if (is_tested("iwarp")) return iwarp_device();
  fabric::Capabilities capabilities = fabric::sim_capabilities();
  // The queue is shallow, because both ends of some thousands of pairs allocate one, and deep queues took
  // most of the suite's time.
  if (is_tested("shared")) capabilities.max_srq_wr = 2048;
  return capabilities;
}

bool tested_credit_pool() { return is_tested("shared"); }

namespace {
ContextOptions context_of(const PairOptions& options) {
  ContextOptions context = options.context;
  context.segmented_bytes = options.segmented_bytes;
  return context;
}
}  // namespace

Pair::Pair(const PairOptions& options)
    : world(options.sim),
      client(ledger, world.open_device("client"), context_of(options)),
      server(ledger, world.open_device("server"), context_of(options)) {
  if (!options.connect) return;
  connect(client, client_session, server, server_session, options);
  // The simulation numbers queue pairs from 1, see connect().
  client_qp_ = 1;
  server_qp_ = client_qp_ + 1;
}

Pair::~Pair() = default;

void Pair::hold_completions(std::uint32_t qp_num, bool hold) {
  if (hold) {
    world.hold_completions(qp_num);
  } else {
    world.release_completions(qp_num);
  }
}

void connect(Side& client, std::uint32_t& client_session, Side& server, std::uint32_t& server_session,
             const PairOptions& options) {
  SessionOptions session{true,
                         options.inflight_max,
                         options.max_message_bytes,
                         options.max_message_bytes,
                         options.staging_bytes,
                         options.call_slots,
                         options.credit_pool};

  session.active = !options.server_is_active;
  session.peer_takes_segments = options.segmented_bytes != 0;
  session.peer_takes_inlined = options.inlined;
  if (options.sealed) {
    SealOptions& seal = session.seal.emplace();
    seal.send_frames.fill(std::byte{1});
    seal.send_bulk.fill(std::byte{2});
  }
  client_session = client.open(session);
  session.client = false;
  session.active = options.server_is_active;
  session.arena_max_bytes = options.arena_max_bytes;
  session.timeout_default_us = options.timeout_default_us;
  session.timeout_max_us = options.timeout_max_us;
  if (session.seal) {
    std::swap(session.seal->send_frames, session.seal->receive_frames);
    std::swap(session.seal->send_bulk, session.seal->receive_bulk);
  }
  server_session = server.open(session);
  Session& a = client.session(client_session);
  Session& b = server.session(server_session);
  EXPECT_EQ(a.connect(b.local_address()), "");
  EXPECT_EQ(b.connect(a.local_address()), "");
}

CallRecord& Pair::complete(const CallSpec& spec) {
  const std::uint64_t id = start(spec);
  EXPECT_NE(id, 0u);
  run();
  return call(id);
}

bool Pair::step() {
  const bool event = world.step();
  const bool at_client = client.turn(world.now_ns()), at_server = server.turn(world.now_ns());
  return event || at_client || at_server;
}

void Pair::run() {
  if (!run_world(world, {&client, &server})) ledger.violation("the sessions never come to rest");
}

void let_pass(fabric::SimWorld& world, std::vector<Side*> awake, std::uint64_t ns) {
  // The clock advances like the ticks of the pump: first by a few milliseconds, and then as often as calls
  // that are pending release need.
  for (std::uint64_t passed = 0; passed < ns;) {
    const std::uint64_t step = std::min(ns - passed, passed < kHoldCheckNs ? kTickNs : kHoldCheckNs);
    world.advance(step);
    passed += step;
    for (int turns = 0; turns < 4; ++turns) {
      world.step();
      for (Side* side : awake) side->turn(world.now_ns());
    }
  }
}

bool run_world(fabric::SimWorld& world, std::vector<Side*> sides, const std::function<void()>& between) {
  int idle_ticks = 0, still = 0;
  for (int i = 0; i < kStepsMax; ++i) {
    bool moved = world.step();
    if (between) between();
    bool wants_timer = false;
    for (Side* side : sides) {
      if (side->turn(world.now_ns())) moved = true;
      if (side->context->wants_timer() || side->context->memory_waiters() != 0) wants_timer = true;
    }
    still = moved ? 0 : still + 1;
    if (still < 2) continue;  // work posted in a turn becomes an event of the world only in the next round
    if (!wants_timer || ++idle_ticks > kIdleTicks) return true;
    world.advance(kTickNs);
  }
  return false;
}

std::vector<std::string> Pair::finish() {
  run();
  // If the peer ended between two frames of a message, this side keeps the first frame until its own end.
  const auto cut_off = [](const Side& side, std::uint32_t session, const Side& other, std::uint32_t others) {
    const Session* open = side.context->find(session);
    return open != nullptr && open->has_segments() && other.is_down(others);
  };
  if (!client_abandoned_ && !cut_off(client, client_session, server, server_session))
    audit_receives(client, client_session, "client");
  if (!server_abandoned_ && !cut_off(server, server_session, client, client_session))
    audit_receives(server, server_session, "server");
  for (auto& [side, session] : {std::pair{&client, client_session}, std::pair{&server, server_session}}) {
    if (Session* open = side->context->find(session)) open->close("the test is over");
  }
  run();
  if (client_abandoned_) client.forget();
  if (server_abandoned_) server.forget();
  client.release_blocks();
  server.release_blocks();
  const auto& sim = world.counters();
  if (sim.cq_overruns != 0) ledger.violation("completion queue overrun");
  if (!client_abandoned_) audit(client, "client");
  if (!server_abandoned_) audit(server, "server");
  return ledger.violations();
}

}  // namespace rdma_rpc::session::test
