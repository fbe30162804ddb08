// Two Sides of one simulated world with a session between them, the loop that drives them, and the audit at
// the end. On the test's thread; time is the world's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "session/sides/side.h"

namespace rdma_rpc::session::test {

/// The device that all session tests run on: a capable NIC, or (RDMA_RPC_SIM=iwarp) one as iWARP has it: no
/// windows, so sessions are in staging mode. CTest runs them on both, and on the NIC once more with sessions
/// that share their receives (RDMA_RPC_SIM=shared).
fabric::Capabilities tested_device();
bool tested_credit_pool();
/// For what only makes sense with windows, or only without.
fabric::Capabilities iwarp_device();
inline bool has_windows() { return tested_device().windows; }
#define RDMA_RPC_NEEDS_WINDOWS() \
  if (!has_windows()) GTEST_SKIP() << "not run: this device has no memory windows"

struct PairOptions {
  fabric::SimOptions sim{.mode = fabric::SimMode::scheduled, .capabilities = tested_device()};
  /// Small slots, so that small messages are bulk ones.
  ContextOptions context{.slot_bytes = 1024,
                         .send_slots = 32,
                         .arena = {.budget_bytes = 8 << 20, .chunk_bytes = 64 << 10},
                         .mr_cache = {.max_bytes = 4 << 20, .max_entries = 64},
                         .shared_from = 0};
  std::uint32_t inflight_max = 4;
  std::uint32_t max_message_bytes = 4 << 20;
  std::size_t staging_bytes = std::size_t{16} << 20;
  std::uint32_t call_slots = 0;
  std::size_t arena_max_bytes = 0;                           ///< of the server's session
  std::uint64_t timeout_default_us = 0, timeout_max_us = 0;  ///< of the server's session
  bool sealed = false;
  /// What is no longer goes in segments; 0: nothing does.
  std::uint32_t segmented_bytes = 0;
  /// Short gather entries of a request go in its frame.
  bool inlined = false;
  bool credit_pool = tested_credit_pool();
  bool connect = true;
  /// The server asks for the connection, and not the client.
  bool server_is_active = false;
};

inline PairOptions immediate(PairOptions options = {}) {
  options.sim.mode = fabric::SimMode::immediate;
  return options;
}
inline PairOptions seeded(std::uint64_t seed, PairOptions options = {}) {
  options.sim.seed = seed;
  return options;
}

class Pair {
 public:
  explicit Pair(const PairOptions& options = {});
  ~Pair();

  std::uint64_t start(const CallSpec& spec) { return client.start(client_session, spec); }
  CallRecord& call(std::uint64_t id) { return ledger.at(id); }
  /// start(), then run() until nothing happens any more.
  CallRecord& complete(const CallSpec& spec);
  Session& at_client() { return client.session(client_session); }
  Session& at_server() { return server.session(server_session); }

  /// One event of the world, then one turn of each side. False: nothing is left to happen.
  bool step();
  /// Steps until nothing is left, moving the clock while timers are wanted. A violation when that never
  /// comes.
  void run();
  void hold_client(bool hold) { hold_completions(client_qp_, hold); }
  void hold_server(bool hold) { hold_completions(server_qp_, hold); }
  /// Of a side whose process was killed: its books need not balance, its context just goes.
  void abandon_client() { client_abandoned_ = true; }
  void abandon_server() { server_abandoned_ = true; }
  /// Closes both sessions, runs, gives every block back and returns what broke a rule: of the calls, and of
  /// the books (slots, blocks, pins, windows, regions, queue pairs). The pair is over afterwards.
  std::vector<std::string> finish();

  Ledger ledger;
  fabric::SimWorld world;
  Side client, server;
  std::uint32_t client_session = 0, server_session = 0;

 private:
  void hold_completions(std::uint32_t qp_num, bool hold);
  std::uint32_t client_qp_ = 0, server_qp_ = 0;
  bool client_abandoned_ = false, server_abandoned_ = false;
};

/// Opens a client session on `client`, a server session on `server`, and connects them.
void connect(Side& client, std::uint32_t& client_session, Side& server, std::uint32_t& server_session,
             const PairOptions& options);
/// So much time in which these sides are awake, and others are not.
void let_pass(fabric::SimWorld& world, std::vector<Side*> awake, std::uint64_t ns);
/// Drives any number of sides of one world until nothing is left to happen. False: that does not come.
bool run_world(fabric::SimWorld& world, std::vector<Side*> sides, const std::function<void()>& between = {});

}  // namespace rdma_rpc::session::test
