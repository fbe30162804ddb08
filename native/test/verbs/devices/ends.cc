// See ends.h.
#include "verbs/devices/ends.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <time.h>

namespace rdma_rpc::session::test {
namespace {

/// The sessions' timers have a resolution of milliseconds. A sleeper that is not woken checks them at this
/// interval.
constexpr int kTickMs = 5;
/// An event that takes longer than this in the slowest guest never occurs.
constexpr std::uint64_t kHangNs = 30'000'000'000;
/// Twice the timeout of a cancelled call.
constexpr int kRestTicks = 25;

/// Returns true if a side did something or has more to do.
bool turn(const std::vector<Side*>& sides) {
  bool moved = false;
  for (Side* side : sides) {
    if (side->turn(real_now_ns())) moved = true;
  }
  return moved;
}

/// Returns true if an event woke this thread.
bool sleep_on(const std::vector<Side*>& sides, int also_fd) {
  std::vector<pollfd> fds;
  for (Side* side : sides) fds.push_back({side->context->cq().fd(), POLLIN, 0});
  if (also_fd >= 0) fds.push_back({also_fd, POLLIN, 0});
  const bool woken = ::poll(fds.data(), fds.size(), kTickMs) > 0;
  for (Side* side : sides) side->context->cq().acknowledge();
  return woken;
}

}  // namespace

ContextOptions small_context(Exposure exposure) {
  return {.slot_bytes = 1024,
          .send_slots = 64,
          .segmented_bytes = kSegmentedBytesMax,
          .arena = {.budget_bytes = 48 << 20, .chunk_bytes = 256 << 10},
          .mr_cache = {.max_bytes = 16 << 20, .max_entries = 64},
          .exposure = exposure,
          .shared_from = 0};
}

SessionOptions small_session(bool client, std::uint32_t inflight_max) {
  SessionOptions options{client, inflight_max, 16u << 20, 16u << 20};
  options.credit_pool = true;
  return options;
}

std::uint64_t real_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

bool drive(std::vector<Side*> sides, const std::function<bool()>& done, const std::string& what,
           int also_fd) {
  const std::uint64_t limit = real_now_ns() + kHangNs;
  while (!done()) {
    if (real_now_ns() > limit) {
      ADD_FAILURE() << "it never came: " << what;
      return false;
    }
    if (!turn(sides)) sleep_on(sides, also_fd);
  }
  return true;
}

void drive_to_rest(std::vector<Side*> sides) {
  const std::uint64_t limit = real_now_ns() + kHangNs;
  for (int quiet = 0; quiet < kRestTicks; quiet = turn(sides) || sleep_on(sides, -1) ? 0 : quiet + 1) {
    if (real_now_ns() < limit) continue;
    ADD_FAILURE() << "the sessions never come to rest";
    return;
  }
}

void close_down(Side& side, std::vector<std::uint32_t> sessions, const std::string& name) {
  for (const std::uint32_t number : sessions) {
    if (Session* open = side.context->find(number)) open->close("the test is over");
  }
  drive(
      {&side}, [&] { return side.context->session_count() == 0; }, name + " without sessions");
  side.release_blocks();
}

Ends::Ends(std::shared_ptr<fabric::Device> at_client, std::shared_ptr<fabric::Device> at_server,
           Exposure exposure)
    : client(ledger, at_client, small_context(exposure)),
      server(ledger, at_server, small_context(exposure)) {}

Link Ends::connect(std::uint32_t inflight_max, std::uint32_t call_slots, bool segments) {
  SessionOptions options = small_session(true, inflight_max);
  options.call_slots = call_slots;
  options.peer_takes_segments = segments;
  options.credit_pool = !segments;
  Link link;
  link.client = client.open(options);
  options.client = false;
  link.server = server.open(options);
  if (link.client == 0 || link.server == 0) return {};
  links_.push_back(link);
  Session& a = client.session(link.client);
  Session& b = server.session(link.server);
  EXPECT_EQ(b.connect(a.local_address()), "");
  EXPECT_EQ(a.connect(b.local_address()), "");
  const auto settled = [&] {
    return (client.is_up(link.client) || client.is_down(link.client)) &&
           (server.is_up(link.server) || server.is_down(link.server));
  };
  until(settled, "a connection");
  EXPECT_EQ(why_down(link), "");
  return link;
}

void Ends::step() {
  if (!turn({&client, &server})) sleep_on({&client, &server}, -1);
}

CallRecord& Ends::complete(const Link& link, const CallSpec& spec) {
  const std::uint64_t id = start(link, spec);
  EXPECT_NE(id, 0u);
  until([&] { return call(id).ended(); }, "the end of a call");
  return call(id);
}

void Ends::expect_works(const Link& link) {
  for (const CallSpec& spec : mixed_calls()) {
    const CallRecord& record = complete(link, spec);
    EXPECT_TRUE(record.answered()) << spec.request_bytes << " to " << spec.response_bytes
                                   << " bytes: " << why_down(link);
    EXPECT_EQ(record.status, spec.status);
    if (!record.answered()) return;
  }
}

std::vector<std::string> Ends::finish() {
  std::vector<std::uint32_t> at_client, at_server;
  for (const Link& link : links_) {
    at_client.push_back(link.client);
    at_server.push_back(link.server);
  }
  close_down(client, at_client, "client");
  close_down(server, at_server, "server");
  audit(client, "client");
  audit(server, "server");
  return ledger.violations();
}

std::vector<CallSpec> mixed_calls() {
  return {
      {},
      {.request_bytes = 700, .response_bytes = 700},
      {.request_bytes = 9000, .request_gather_entries = 3},
      {.request_bytes = 300'000, .request_in_arena = true},
      {.response_bytes = 200'000, .response_gather_entries = 3},
      {.request_bytes = 100'000, .request_gather_entries = 2, .response_bytes = 100'000},
      {.request_bytes = 20, .response_bytes = 50'000, .given_reply_buffer = 60'000},
  };
}

}  // namespace rdma_rpc::session::test
