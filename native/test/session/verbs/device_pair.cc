// See device_pair.h.
#include "session/verbs/device_pair.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <time.h>

#include "fabric/verbs/verbs_devices.h"
#include "session/audit.h"

namespace rdma_rpc::session::test {
namespace {

/// The timers of sessions are milliseconds; who sleeps without news looks at them that often.
constexpr int kTickMs = 5;
/// What takes longer than this in the slowest guest never comes.
constexpr std::uint64_t kNeverNs = 20'000'000'000;

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::shared_ptr<fabric::Device> open_device(std::size_t which) {
  std::string error;
  auto device =
      fabric::open_verbs_device(fabric::test::test_options(which, fabric::VerbsConnect::automatic), &error);
  EXPECT_NE(device, nullptr) << error;
  return device;
}

/// Small slots, so that small messages are bulk ones.
ContextOptions small_context(Exposure exposure) {
  return {.slot_bytes = 1024,
          .send_slots = 64,
          .arena = {.budget_bytes = 32 << 20, .chunk_bytes = 256 << 10},
          .mr_cache = {.max_bytes = 16 << 20, .max_entries = 64},
          .exposure = exposure};
}

}  // namespace

DevicePair::DevicePair(Exposure exposure)
    : client(ledger, open_device(0), small_context(exposure)),
      server(ledger, open_device(1), small_context(exposure)) {}

DevicePair::Link DevicePair::connect(std::uint32_t inflight_max) {
  SessionOptions options{true, inflight_max, 8u << 20, 8u << 20};
  Link link;
  link.client = client.open(options);
  options.client = false;
  link.server = server.open(options);
  links_.push_back(link);
  Session& a = client.session(link.client);
  Session& b = server.session(link.server);
  EXPECT_EQ(b.connect(a.local_address()), "");
  EXPECT_EQ(a.connect(b.local_address()), "");
  const auto known = [](const Side& side, std::uint32_t session) {
    return side.is_up(session) || side.is_down(session);
  };
  until([&] { return known(client, link.client) && known(server, link.server); }, "a connection");
  EXPECT_EQ(why_down(link), "");
  return link;
}

CallRecord& DevicePair::complete(const Link& link, const CallSpec& spec) {
  const std::uint64_t id = start(link, spec);
  EXPECT_NE(id, 0u);
  until([&] { return call(id).ended(); }, "the end of a call");
  return call(id);
}

void DevicePair::step() {
  const bool at_client = client.turn(now_ns()), at_server = server.turn(now_ns());
  if (at_client || at_server) return;
  // Turns that found nothing have armed the queues.
  fabric::CompletionQueue &a = client.context->cq(), &b = server.context->cq();
  pollfd fds[] = {{a.fd(), POLLIN, 0}, {b.fd(), POLLIN, 0}};
  ::poll(fds, 2, kTickMs);
  a.acknowledge();
  b.acknowledge();
}

bool DevicePair::until(const std::function<bool()>& done, const char* what) {
  const std::uint64_t limit = now_ns() + kNeverNs;
  while (!done()) {
    if (now_ns() > limit) {
      ADD_FAILURE() << "it never came: " << what;
      return false;
    }
    step();
  }
  return true;
}

std::vector<std::string> DevicePair::finish() {
  for (const Link& link : links_) {
    if (Session* open = client.context->find(link.client)) open->close("the test is over");
    if (Session* open = server.context->find(link.server)) open->close("the test is over");
  }
  until([&] { return client.context->session_count() + server.context->session_count() == 0; },
        "the end of the sessions");
  client.release_blocks();
  server.release_blocks();
  audit(client, "client");
  audit(server, "server");
  return ledger.violations();
}

}  // namespace rdma_rpc::session::test
