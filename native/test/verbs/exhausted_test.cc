// Tests exhausted resources of a device or of the system: each resource is refused in turn, and locked memory
// is limited as by `ulimit -l`. The error must name the resource, nothing may be left open, and the next
// attempt must work.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "verbs/devices/census.h"
#include "verbs/devices/ends.h"
#include "verbs/devices/hooked_device.h"

namespace rdma_rpc::session::test {
namespace {

class Exhausted : public VerbsFaults {};

/// Fails the n-th resource that is requested while it is armed.
struct RefuseNth {
  std::uint64_t nth = 0, seen = 0;
  bool armed = true;
  bool grant() { return !armed || ++seen != nth; }
  bool refused() const { return seen >= nth; }
};

/// Creates and closes two ends, with the n-th resource of one of them refused. Returns false if fewer than n
/// requests were made.
bool live(std::uint64_t nth, bool at_client) {
  SCOPED_TRACE((at_client ? "client's resource number " : "server's resource number ") + std::to_string(nth));
  RefuseNth refuse{nth};
  auto hooks = std::make_shared<Hooks>();
  hooks->grant = [&refuse] { return refuse.grant(); };
  std::shared_ptr<fabric::Device> client = open_device(kClientEnd), server = open_device(kServerEnd);
  (at_client ? client : server) = std::make_shared<HookedDevice>(at_client ? client : server, hooks);

  // The context and the session must be refused with a reason, and must succeed when they are requested
  // again.
  std::string error;
  auto context = Context::open(at_client ? client : server, small_context(), &error);
  EXPECT_EQ(context == nullptr, !error.empty()) << error;
  if (context != nullptr) {
    const std::int64_t number = context->create_session({at_client, 4, 1 << 20, 1 << 20}, &error);
    EXPECT_EQ(number < 0, !error.empty()) << error;
    context.reset();
  }
  if (refuse.refused()) {
    EXPECT_NE(error, "");
    const fabric::DeviceCounters left = (at_client ? client : server)->counters();
    EXPECT_EQ(left.queue_pairs + left.memory_regions + left.memory_windows + left.memory_bytes, 0u);
  }
  // Refuses the resources that calls request. The calls are refused, wait, or proceed without the resource.
  // The calls never hang.
  refuse.armed = false;
  Ends ends(client, server);
  const Link link = ends.connect();
  refuse.armed = true;
  for (const CallSpec& spec : mixed_calls()) {
    const CallRecord& call = ends.complete(link, spec);
    EXPECT_TRUE(call.ended());
    EXPECT_TRUE(call.answered() || call.reason != boundary::Reason::session_lost);
  }
  ends.expect_works(link);
  EXPECT_EQ(ends.finish(), Violations{});
  return refuse.refused();
}

TEST_F(Exhausted, TheNthResourceOfTheClient) {
  for (std::uint64_t nth = 1; live(nth, true) && !HasFailure(); ++nth) ASSERT_LT(nth, 100u);
}

TEST_F(Exhausted, TheNthResourceOfTheServer) {
  for (std::uint64_t nth = 1; live(nth, false) && !HasFailure(); ++nth) ASSERT_LT(nth, 100u);
}

/// Drops this process's right to lock any amount of memory. The kernel refuses devices that were opened with
/// other rights, so the right is dropped before the device is opened.
class NoLockRight {
 public:
  NoLockRight() { set(false); }
  ~NoLockRight() { set(true); }
  NoLockRight(const NoLockRight&) = delete;
  NoLockRight& operator=(const NoLockRight&) = delete;

 private:
  void set(bool on) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    EXPECT_EQ(::syscall(SYS_capget, &header, data), 0);
    constexpr std::uint32_t kLock = 1u << CAP_IPC_LOCK;
    if (!on) had_ = (data[0].effective & kLock) != 0;
    data[0].effective = on && had_ ? data[0].effective | kLock : data[0].effective & ~kLock;
    EXPECT_EQ(::syscall(SYS_capset, &header, data), 0);
  }
  bool had_ = false;
};

class LockLimit {
 public:
  explicit LockLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_MEMLOCK, &before_);
    const rlimit lower{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_MEMLOCK, &lower), 0);
  }
  ~LockLimit() { EXPECT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before_), 0); }
  LockLimit(const LockLimit&) = delete;
  LockLimit& operator=(const LockLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(Exhausted, LockedMemoryForTheContext) {
  const NoLockRight none;
  const auto device = open_device(kClientEnd);
  std::string error;
  {
    const LockLimit limit(16 << 10);
    EXPECT_EQ(Context::open(device, small_context(), &error), nullptr);
  }
  EXPECT_NE(error.find("16384"), std::string::npos) << error;
  EXPECT_NE(error.find("ulimit -l"), std::string::npos) << error;
  EXPECT_NE(Context::open(device, small_context(), &error), nullptr) << error;
}

TEST_F(Exhausted, LockedMemoryForASession) {
  const NoLockRight none;
  const auto device = open_device(kClientEnd);
  std::string error;
  const auto context = Context::open(device, small_context(), &error);
  ASSERT_NE(context, nullptr) << error;
  {
    // This limit is more than the context has locked, and less than this session needs in addition.
    const LockLimit limit(96 << 10);
    EXPECT_LT(context->create_session({true, 256, 1 << 20, 1 << 20}, &error), 0);
  }
  EXPECT_NE(error.find("98304"), std::string::npos) << error;
  EXPECT_GE(context->create_session({true, 256, 1 << 20, 1 << 20}, &error), 0) << error;
}

TEST_F(Exhausted, LockedMemoryForTheMessagesOfCalls) {
  const NoLockRight none;
  Ends ends;
  const Link link = ends.connect();
  {
    // Memory that is already registered stays registered. Messages that would need more are copied, refused
    // or wait.
    const LockLimit limit(4 << 10);
    for (const CallSpec& spec : mixed_calls()) {
      const std::uint64_t id = ends.start(link, spec);
      drive_to_rest({&ends.client, &ends.server});
      if (!ends.call(id).ended()) ends.client.cancel(id, boundary::Reason::deadline);
      ends.until([&] { return ends.call(id).ended(); }, "the end of a call without memory");
      EXPECT_TRUE(ends.call(id).answered() || ends.call(id).reason != boundary::Reason::session_lost);
    }
    EXPECT_FALSE(ends.client.is_down(link.client)) << ends.client.why_down(link.client);
  }
  ends.expect_works(link);
  EXPECT_EQ(ends.finish(), Violations{});
}

[[noreturn]] void give_up_rights_while_a_session_runs() {
  Ends ends;
  const Link link = ends.connect();
  ends.expect_works(link);
  const NoLockRight none;
  const std::uint64_t id = ends.start(link, {});
  ends.until([&] { return ends.client.is_down(link.client); }, "the end of the session");
  EXPECT_TRUE(ends.call(id).ended());
  EXPECT_FALSE(ends.call(id).answered());
  const std::string why = ends.client.why_down(link.client);
  EXPECT_NE(why.find("does not take a request"), std::string::npos) << why;
  std::_Exit(testing::Test::HasFailure() ? 1 : 0);
}

/// The situation is that of a daemon that drops its rights after it has connected. The kernel accepts no
/// further request from a process that opened the device with other rights, and does not let librdmacm clean
/// up. For that reason, another process runs this part.
TEST_F(Exhausted, RightsDroppedWhileASessionRuns) {
  if (guest_link() != "rxe") GTEST_SKIP() << "not run: only soft-RoCE's doorbell is a call of the kernel";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(give_up_rights_while_a_session_runs(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rdma_rpc::session::test
