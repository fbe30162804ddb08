// Runs one server and any number of clients, each with its own device, so that each can be stopped like a
// process. Time is simulated. This code runs on the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "session/sides/audit.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {

class ClientGroup {
 public:
  explicit ClientGroup(std::size_t count, const PairOptions& options = large_messages())
      : world(options.sim),
        server(ledger, world.open_device("server"), options.context),
        at_client(count),
        at_server(count) {
    for (std::size_t i = 0; i < count; ++i) {
      clients.emplace_back(ledger, world.open_device("client"), options.context);
      connect(clients[i], at_client[i], server, at_server[i], options);
    }
    run();
  }

  /// Options with room for messages of 16 MiB, and for many of them.
  static PairOptions large_messages() {
    PairOptions options;
    options.context.arena = {.budget_bytes = std::size_t{512} << 20, .chunk_bytes = 1 << 20};
    options.context.mr_cache = {.max_bytes = std::size_t{512} << 20, .max_entries = 1024};
    options.max_message_bytes = 16 << 20;
    options.staging_bytes = std::size_t{256} << 20;
    return options;
  }

  std::uint64_t start(std::size_t client, const CallSpec& spec) {
    const std::uint64_t id = clients[client].start(at_client[client], spec);
    EXPECT_NE(id, 0u);
    return id;
  }
  void stop(std::size_t client) { world.stop(*clients[client].device); }
  void resume(std::size_t client) { world.resume(*clients[client].device); }

  void step() {
    world.step();
    for (Side& client : clients) client.turn(world.now_ns());
    server.turn(world.now_ns());
  }
  template <class Done>
  [[nodiscard]] bool until(Done&& done) {
    for (int i = 0; i < 100'000 && !done(); ++i) step();
    return done();
  }
  void run() { EXPECT_TRUE(run_world(world, sides())); }
  void let_pass(std::uint64_t ns) { test::let_pass(world, sides(), ns); }
  std::string why_down(std::size_t client) const { return server.why_down(at_server[client]); }
  bool works(std::size_t client, const CallSpec& spec) {
    const std::uint64_t id = start(client, spec);
    return until([&] { return ledger.at(id).ended(); }) && ledger.at(id).answered();
  }

  std::vector<std::string> finish() {
    run();
    for (std::size_t i = 0; i < clients.size(); ++i) {
      if (Session* open = clients[i].context->find(at_client[i])) open->close("the test is over");
      if (Session* open = server.context->find(at_server[i])) open->close("the test is over");
    }
    run();
    for (Side* side : sides()) {
      side->release_blocks();
      audit(*side, side == &server ? "server" : "client");
    }
    return ledger.violations();
  }

  Ledger ledger;
  fabric::SimWorld world;
  Side server;
  std::deque<Side> clients;
  std::vector<std::uint32_t> at_client, at_server;

 private:
  std::vector<Side*> sides() {
    std::vector<Side*> all{&server};
    for (Side& client : clients) all.push_back(&client);
    return all;
  }
};

}  // namespace rdma_rpc::session::test
