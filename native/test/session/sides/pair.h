// Opens two Sides of one simulated world with a session between them, the loop that runs them, and the audit
// at the end. This code runs on the test's thread, and time is simulated.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "session/sides/side.h"

namespace rdma_rpc::session::test {

/// Returns the device of all session tests: a capable NIC, or with RDMA_RPC_SIM=iwarp an iWARP device without
/// windows, so that sessions are in staging mode. CTest runs the tests on both, and on the NIC once more with
/// shared receives (RDMA_RPC_SIM=shared).
fabric::Capabilities tested_device();
bool tested_credit_pool();
/// These macros are for tests that make sense only with windows, or only without windows.
fabric::Capabilities iwarp_device();
inline bool has_windows() { return tested_device().windows; }
#define RDMA_RPC_NEEDS_WINDOWS() \
  if (!has_windows()) GTEST_SKIP() << "not run: this device has no memory windows"

struct PairOptions {
  fabric::SimOptions sim{.mode = fabric::SimMode::scheduled, .capabilities = tested_device()};
  /// The slots are small, so that even small messages are bulk messages.
  ContextOptions context{.slot_bytes = 1024,
                         .send_slots = 32,
                         .arena = {.budget_bytes = 8 << 20, .chunk_bytes = 64 << 10},
                         .mr_cache = {.max_bytes = 4 << 20, .max_entries = 64},
                         .shared_from = 0};
  std::uint32_t inflight_max = 4;
  std::uint32_t max_message_bytes = 4 << 20;
  std::size_t staging_bytes = std::size_t{16} << 20;
  std::uint32_t call_slots = 0;
  std::size_t arena_max_bytes = 0;                           ///< limit for the server's session
  std::uint64_t timeout_default_us = 0, timeout_max_us = 0;  ///< limits of the server's session
  bool sealed = false;
  /// Messages of up to this size are sent in segments; 0 for no segments.
  std::uint32_t segmented_bytes = 0;
  /// Short gather entries of a request are sent inline in its frame.
  bool inlined = false;
  bool credit_pool = tested_credit_pool();
  bool connect = true;
  /// True when the server, instead of the client, is the active side of the connection.
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
  /// Calls start(), then run().
  CallRecord& complete(const CallSpec& spec);
  Session& at_client() { return client.session(client_session); }
  Session& at_server() { return server.session(server_session); }

  /// Runs one event of the world, then one turn of each side. Returns false when nothing is left to do.
  bool step();
  /// Steps until nothing is left to do, and advances the clock while timers are wanted. Adds a violation when
  /// the steps never end.
  void run();
  void hold_client(bool hold) { hold_completions(client_qp_, hold); }
  void hold_server(bool hold) { hold_completions(server_qp_, hold); }
  /// Treats a side as destroyed, as if its process had been killed. The resources of that side need not have
  /// been released.
  void abandon_client() { client_abandoned_ = true; }
  void abandon_server() { server_abandoned_ = true; }
  /// Closes both sessions, runs, releases every block, and returns all violations. These are violations of
  /// the rules for calls, and resources that are left (slots, blocks, pins, windows, regions, queue pairs).
  /// The pair cannot be used afterwards.
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
/// Lets this much time pass, while only these sides run.
void let_pass(fabric::SimWorld& world, std::vector<Side*> awake, std::uint64_t ns);
/// Runs any number of sides of one world until nothing is left to do. Returns false when the sides never
/// finish.
bool run_world(fabric::SimWorld& world, std::vector<Side*> sides, const std::function<void()>& between = {});

}  // namespace rdma_rpc::session::test
