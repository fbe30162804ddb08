// Two Sides on two real devices, in one process and real time: driven by the devices' own wake-ups. Nothing
// here measures time, but what never comes is given up. On the test's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "session/side.h"

namespace rdma_rpc::session::test {

class DevicePair {
 public:
  struct Link {
    std::uint32_t client = 0, server = 0;
  };

  explicit DevicePair(Exposure exposure);

  /// A session that both sides say is up; else the test has failed.
  Link connect(std::uint32_t inflight_max = 8);
  std::uint64_t start(const Link& link, const CallSpec& spec) { return client.start(link.client, spec); }
  CallRecord& call(std::uint64_t id) { return ledger.at(id); }
  /// start(), then until it has ended.
  CallRecord& complete(const Link& link, const CallSpec& spec);
  /// One turn of each side, and if nothing happened in it a sleep until something does, or a few
  /// milliseconds.
  void step();
  /// Steps until `done`. False, and the test has failed, when that never comes.
  bool until(const std::function<bool()>& done, const char* what);
  /// Empty, or why a session has ended.
  std::string why_down(const Link& link) const {
    return client.why_down(link.client) + server.why_down(link.server);
  }
  /// Closes everything. What broke a rule, of the calls and of the books.
  std::vector<std::string> finish();

  Ledger ledger;
  Side client, server;

 private:
  std::vector<Link> links_;
};

}  // namespace rdma_rpc::session::test
