// Opens client and server on two RDMA devices in one process, in real time: the Sides of the session tests
// and their oracle, driven by the devices' own wake-ups. No test here measures time. A test that hangs is
// aborted.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "session/sides/audit.h"
#include "session/sides/side.h"
#include "verbs/devices/devices.h"

namespace rdma_rpc::session::test {

/// Returns options with small slots, so that small messages count as bulk.
ContextOptions small_context(Exposure exposure = Exposure::automatic);

/// Returns options with few call slots. As in sessions of devices, receives are shared from the first session
/// on if the device supports it.
SessionOptions small_session(bool client, std::uint32_t inflight_max);

struct Link {
  std::uint32_t client = 0, server = 0;
};

std::uint64_t real_now_ns();

/// Drives the sides until `done` is true, and sleeps on their completion queues (and on `also_fd`). Fails the
/// test and returns false if `done` does not become true in time.
bool drive(std::vector<Side*> sides, const std::function<bool()>& done, const std::string& what,
           int also_fd = -1);
/// Runs until no work is left and no timer runs. Calls may still be in progress then.
void drive_to_rest(std::vector<Side*> sides);

/// Closes the remaining sessions, returns every block, and checks that nothing is left.
void close_down(Side& side, std::vector<std::uint32_t> sessions, const std::string& name);

class Ends {
 public:
  /// A test may pass the devices, for example hooked ones; otherwise each side opens its own device.
  explicit Ends(std::shared_ptr<fabric::Device> at_client = open_device(kClientEnd),
                std::shared_ptr<fabric::Device> at_server = open_device(kServerEnd),
                Exposure exposure = Exposure::automatic);

  /// Opens a session and waits until both sides report that it is up. `client` is 0 when that failed (and the
  /// test has failed with it). With `segments`, the session has receives of its own.
  Link connect(std::uint32_t inflight_max = 8, std::uint32_t call_slots = 0, bool segments = false);
  std::uint64_t start(const Link& link, const CallSpec& spec) { return client.start(link.client, spec); }
  CallRecord& call(std::uint64_t id) { return ledger.at(id); }
  /// Runs one iteration of each side. If nothing happened in it, sleeps until something happens, or for a few
  /// milliseconds.
  void step();
  bool until(const std::function<bool()>& done, const std::string& what) {
    return drive({&client, &server}, done, what);
  }
  /// Calls start(), then runs until the call has ended.
  CallRecord& complete(const Link& link, const CallSpec& spec);
  /// Makes a call of each kind, and expects every answer.
  void expect_works(const Link& link);
  /// Returns the reason why a session has ended, or "" while both are open.
  std::string why_down(const Link& link) const {
    return client.why_down(link.client) + server.why_down(link.server);
  }
  /// Closes everything. Returns the violations of the rules.
  std::vector<std::string> finish();

  Ledger ledger;
  Side client, server;

 private:
  std::vector<Link> links_;
};

using Violations = std::vector<std::string>;

/// Returns one call for each tier and direction. The two sides check the bytes of each message.
std::vector<CallSpec> mixed_calls();

}  // namespace rdma_rpc::session::test
