// Tests the loops of `rdma-rpc perf`: they carry the requested messages on each fabric, and detect a single
// wrong byte. On shm and tcp, each side runs on its own thread.
#include "perf/pair.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "fabric/shm/shm.h"
#include "fabric/tcp/tcp.h"
#include "perf/endpoints.h"
#include "perf/fabric_endpoint.h"

namespace rdma_rpc::perf {
namespace {

std::shared_ptr<fabric::Device> open_device(const std::string& name, std::string* error) {
  return name == "shm" ? fabric::open_shm_device({}, error) : fabric::open_tcp_device({}, error);
}

struct Ends {
  std::unique_ptr<Pair> client, server;
  Damaged* at_client = nullptr;
  Damaged* at_server = nullptr;
};

class Loops : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Pair> side(PairOptions options, bool active, Damaged** damaged) {
    options.active = active;
    std::string error;
    auto device = open_device(GetParam(), &error);
    EXPECT_NE(device, nullptr) << error;
    EndpointOptions needs = Pair::needs(options);
    needs.shared_receives = false;  // both fabrics lack shared receives
    auto endpoint = make_fabric_endpoint(device, needs, &error);
    EXPECT_NE(endpoint, nullptr) << error;
    if (options.shared_receives)
      endpoint = std::make_unique<Crossed>(std::move(endpoint), options.queue_pairs);
    auto wrapped = std::make_unique<Damaged>(std::move(endpoint));
    *damaged = wrapped.get();
    auto pair = Pair::open(std::move(wrapped), options, &error);
    EXPECT_NE(pair, nullptr) << error;
    return pair;
  }

  Ends connected(const PairOptions& options) {
    Ends ends;
    ends.client = side(options, true, &ends.at_client);
    ends.server = side(options, false, &ends.at_server);
    const auto address = [&](Pair& pair) {
      PeerAddress found{{}, pair.endpoint().memory()};
      for (std::uint32_t i = 0; i < options.queue_pairs; ++i)
        found.queue_pairs.push_back(pair.endpoint().address(i));
      return found;
    };
    const PeerAddress client = address(*ends.client), server = address(*ends.server);
    EXPECT_EQ(ends.server->connect(client), "");
    EXPECT_EQ(ends.client->connect(server), "");
    auto other = std::async(std::launch::async, [&] { return ends.server->exchange_connect_messages(); });
    EXPECT_EQ(ends.client->exchange_connect_messages(), "");
    EXPECT_EQ(other.get(), "");
    return ends;
  }

  /// Moves messages on three queue pairs, in both directions.
  void move_all(bool shared_receives);

  /// Runs both sides of a step that the client measures, as the command does.
  std::pair<Outcome, Outcome> run(Ends& ends, Step step) {
    Step passive = step;
    passive.measures = false;
    step.receives = false;
    ends.server->prepare(passive);
    ends.client->prepare(step);
    auto other =
        std::async(std::launch::async, [&] { return ends.server->run(passive, [](std::uint64_t) {}); });
    Outcome client = ends.client->run(step, [&](std::uint64_t messages) {
      ends.client->stop();
      ends.server->stop(messages);
    });
    if (!client.error.empty()) ends.server->stop();
    Outcome server = other.get();
    ends.server->check_written(passive, client.messages, &server);
    return {client, server};
  }
};

PairOptions validating(std::uint32_t bytes) {
  PairOptions options;
  options.bytes_max = bytes;
  options.depth = 16;
  options.receive_depth = 16;
  options.validate = true;
  options.inline_max = 64;
  options.events = true;
  return options;
}

constexpr Verb kVerbs[] = {Verb::send, Verb::write, Verb::read};
/// The number is low, because two spinning threads share a processor when the machine is busy.
constexpr std::uint64_t kMessages = 40;

TEST_P(Loops, CarryEveryMessageWholeInBothMeasures) {
  for (const Verb verb : kVerbs) {
    for (const bool latency : {true, false}) {
      PairOptions options = validating(5000);
      options.events = !(verb == Verb::write && latency);
      Ends ends = connected(options);
      for (const std::uint32_t bytes : {1u, 7u, 64u, 5000u}) {
        const auto [client, server] =
            run(ends,
                {.verb = verb, .latency = latency, .bytes = bytes, .messages = kMessages, .signal_every = 4});
        SCOPED_TRACE(std::to_string(static_cast<int>(verb)) + (latency ? " lat " : " bw ") +
                     std::to_string(bytes));
        EXPECT_EQ(client.error, "");
        EXPECT_EQ(server.error, "");
        EXPECT_EQ(client.messages, kMessages);
        EXPECT_EQ(client.corrupt + server.corrupt, 0u) << client.first_corrupt << server.first_corrupt;
        EXPECT_EQ(client.latency_ns.size(), latency ? kMessages : 0U);
        // If the peer answers, latencies are halves of round trips. Latencies are measured by a different
        // clock than the whole step.
        const std::uint64_t halves = verb == Verb::read ? 1 : 2;
        const auto sum =
            std::accumulate(client.latency_ns.begin(), client.latency_ns.end(), std::uint64_t{0});
        EXPECT_LE(sum * halves, client.elapsed_ns + client.elapsed_ns / 10);
        if (latency) {
          EXPECT_GT(sum, 0u);
        }
        EXPECT_EQ(server.received, verb == Verb::send || (verb == Verb::write && latency) ? kMessages : 0U);
        if (verb == Verb::write && !latency) break;  // check_written() counts from the first step
      }
    }
  }
}

TEST_P(Loops, AtomicsFindWhatEarlierOnesHaveLeft) {
  Ends ends = connected(validating(64));
  for (const Verb verb : {Verb::fetch_add, Verb::compare_swap, Verb::fetch_add}) {
    for (const bool latency : {true, false}) {
      const auto [client, server] =
          run(ends, {.verb = verb, .latency = latency, .bytes = 8, .messages = kMessages});
      EXPECT_EQ(client.error + server.error, "");
      EXPECT_EQ(client.messages, kMessages);
      EXPECT_EQ(client.corrupt, 0u) << client.first_corrupt;
    }
  }
}

TEST_P(Loops, LatencyOfSendsNeverWaitsForAnUnrequestedCompletion) {
  PairOptions shallow = validating(64);
  shallow.depth = 8;
  // Few large messages fit the memory, so the depth is reduced to the number of slots.
  PairOptions large = validating(8 << 20);
  large.depth = 128;
  large.receive_depth = 512;
  for (const PairOptions& options : {shallow, large}) {
    Ends ends = connected(options);
    EXPECT_EQ(ends.client->layout().slots(), options.depth == 8 ? 16U : 8U);
    const auto [client, server] =
        run(ends, {.verb = Verb::send, .bytes = 2, .messages = 100, .signal_every = 64});
    EXPECT_EQ(client.error + server.error, "");
    EXPECT_EQ(client.messages, 100u);
    EXPECT_EQ(client.corrupt + server.corrupt, 0u) << client.first_corrupt << server.first_corrupt;
  }
}

/// The option has its default value. The peer's message may arrive while this side waits for the completion.
TEST_P(Loops, LatencyWithOneRequestUnderWayMissesNoMessage) {
  for (const Verb verb : kVerbs) {
    PairOptions options = validating(64);
    options.depth = 1;
    options.receive_depth = verb == Verb::send ? 16 : 1;
    options.events = verb != Verb::write;
    Ends ends = connected(options);
    for (int i = 0; i < 2; ++i) {
      const auto [client, server] = run(ends, {.verb = verb, .bytes = 2, .messages = 100});
      EXPECT_EQ(client.error + server.error, "");
      EXPECT_EQ(client.messages, 100u);
      EXPECT_EQ(client.corrupt + server.corrupt, 0u) << client.first_corrupt << server.first_corrupt;
    }
  }
}

TEST_P(Loops, LatencyOfSendsHasAReceiveForEachOfFewMessages) {
  for (const std::uint32_t receives : {1u, 2u, 3u, 16u}) {
    PairOptions options = validating(64);
    options.receive_depth = receives;
    Ends ends = connected(options);
    const auto [client, server] = run(ends, {.verb = Verb::send, .bytes = 2, .messages = 100});
    EXPECT_EQ(client.error + server.error, "") << receives;
    EXPECT_EQ(server.received, 100u) << receives;
    EXPECT_EQ(client.corrupt + server.corrupt, 0u) << client.first_corrupt << server.first_corrupt;
  }
}

TEST_P(Loops, ASideThatIsOnlyReadSleepsUnlessItHasToMoveTheBytes) {
  PairOptions options = validating(64);
  options.events = false;
  Ends ends = connected(options);
  std::promise<void> slept;
  bool sleeps = false;
  ends.at_server->before_sleep([&] {
    if (!std::exchange(sleeps, true)) slept.set_value();
  });
  Step step{.verb = Verb::read, .latency = false, .bytes = 64, .messages = kMessages};
  Step passive = step;
  passive.measures = false;
  ends.server->prepare(passive);
  ends.client->prepare(step);
  auto other =
      std::async(std::launch::async, [&] { return ends.server->run(passive, [](std::uint64_t) {}); });
  const Outcome client = ends.client->run(step, [&](std::uint64_t) { ends.client->stop(); });
  const bool moves = ends.server->endpoint().limits().moves_in_poll;
  // A side that does not sleep must also not wait for ever.
  if (!moves) {
    EXPECT_EQ(slept.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  }
  ends.server->stop(client.messages);
  EXPECT_EQ(client.error + other.get().error, "");
  EXPECT_EQ(sleeps, !moves);
}

TEST_P(Loops, ASideThatIsStoppedWhileItSleepsIsNotConnected) {
  Damaged* endpoint = nullptr;
  const auto pair = side(validating(64), true, &endpoint);
  endpoint->before_sleep([&] { pair->stop(); });
  EXPECT_EQ(pair->exchange_connect_messages(), "stopped");
}

TEST_P(Loops, SayWhichRequestHasFailed) {
  Ends ends = connected(validating(64));
  ends.at_client->fail_next("remote invalid request error");
  const auto [client, server] =
      run(ends, {.verb = Verb::send, .latency = false, .bytes = 64, .messages = 16});
  EXPECT_EQ(client.error, "remote invalid request error (SEND 0, 64 bytes, on queue pair 0)");
}

TEST_P(Loops, FindADamagedByteOfASend) {
  Ends ends = connected(validating(64));
  // The connect message came first, so message 5 is the seventh and lies in the seventh slot. The plan is
  // made after the connect message has arrived.
  ends.at_server->plan(ends.server->layout().in(0, 6) + 33, true, 6);
  const auto [client, server] =
      run(ends, {.verb = Verb::send, .latency = false, .bytes = 64, .messages = 16});
  EXPECT_EQ(client.error + server.error, "");
  EXPECT_EQ(server.corrupt, 1u);
  EXPECT_NE(server.first_corrupt.find("message 5 of queue pair 0, 64 bytes, differs from byte 33 on"),
            std::string::npos)
      << server.first_corrupt;
}

TEST_P(Loops, FindADamagedByteOfARead) {
  Ends ends = connected(validating(256));
  ends.client->prepare({});
  const Step step{.verb = Verb::read, .latency = true, .bytes = 256, .messages = 8};
  ends.at_client->plan(ends.client->layout().in(0, 3) + 255, false, 4);
  const auto [client, server] = run(ends, step);
  EXPECT_EQ(client.error + server.error, "");
  EXPECT_EQ(client.corrupt, 1u);
  EXPECT_NE(client.first_corrupt.find("message 3"), std::string::npos) << client.first_corrupt;
  EXPECT_NE(client.first_corrupt.find("byte 255"), std::string::npos) << client.first_corrupt;
}

TEST_P(Loops, FindADamagedByteOfAWrite) {
  Ends ends = connected(validating(64));
  Step step{.verb = Verb::write, .latency = false, .bytes = 64, .messages = 40};
  auto [client, server] = run(ends, step);
  EXPECT_EQ(server.corrupt, 0u) << server.first_corrupt;
  ends.server->endpoint().data()[ends.server->layout().in(0, 39) + 9] ^= std::byte{0x80};
  ends.server->check_written(step, client.messages, &server);
  EXPECT_EQ(server.corrupt, 1u);
  EXPECT_NE(server.first_corrupt.find("message 39"), std::string::npos) << server.first_corrupt;
}

TEST_P(Loops, AnotherSeedIsNotTheSameData) {
  PairOptions options = validating(64);
  Ends ends;
  ends.client = side(options, true, &ends.at_client);
  options.seed = 2;
  ends.server = side(options, false, &ends.at_server);
  const PeerAddress client{{ends.client->endpoint().address(0)}, ends.client->endpoint().memory()};
  const PeerAddress server{{ends.server->endpoint().address(0)}, ends.server->endpoint().memory()};
  EXPECT_EQ(ends.server->connect(client), "");
  EXPECT_EQ(ends.client->connect(server), "");
  auto other = std::async(std::launch::async, [&] { return ends.server->exchange_connect_messages(); });
  EXPECT_EQ(ends.client->exchange_connect_messages(), "");
  EXPECT_EQ(other.get(), "");
  const auto [asked, answered] =
      run(ends, {.verb = Verb::send, .latency = false, .bytes = 64, .messages = 20});
  EXPECT_EQ(asked.error + answered.error, "");
  EXPECT_EQ(answered.corrupt, 20u);
}

TEST_P(Loops, ManyQueuePairsBothWaysAndEventsMoveAll) { move_all(false); }
TEST_P(Loops, ReceivesOfOneQueuePairTakeMessagesOfAnother) { move_all(true); }

void Loops::move_all(bool shared_receives) {
  PairOptions options = validating(1000);
  options.queue_pairs = 3;
  options.shared_receives = shared_receives;
  Ends ends = connected(options);
  const Step step{.verb = Verb::send,
                  .latency = false,
                  .bytes = 1000,
                  .messages = 200,
                  .signal_every = 8,
                  .post_list = 4};
  ends.client->prepare(step);
  ends.server->prepare(step);
  std::promise<std::uint64_t> client_sent, server_sent;
  auto one = std::async(std::launch::async, [&] {
    return ends.client->run(step, [&](std::uint64_t count) { client_sent.set_value(count); });
  });
  auto two = std::async(std::launch::async, [&] {
    return ends.server->run(step, [&](std::uint64_t count) { server_sent.set_value(count); });
  });
  const std::uint64_t to_server = client_sent.get_future().get(), to_client = server_sent.get_future().get();
  ends.client->stop(to_client);
  ends.server->stop(to_server);
  const Outcome client = one.get(), server = two.get();
  EXPECT_EQ(client.error + server.error, "");
  EXPECT_EQ(client.received, 600u);
  EXPECT_EQ(server.received, 600u);
  EXPECT_EQ(client.corrupt + server.corrupt, 0u) << client.first_corrupt << server.first_corrupt;
}

TEST_P(Loops, APeerThatIsGoneEndsTheStepWithAnError) {
  Ends ends = connected(validating(64));
  ends.server.reset();
  const Step step{.verb = Verb::send, .latency = true, .bytes = 64, .messages = 100};
  ends.client->prepare(step);
  const Outcome outcome = ends.client->run(step, [](std::uint64_t) {});
  EXPECT_NE(outcome.error, "");
}

TEST_P(Loops, InvalidAddressesAreRefused) {
  PairOptions options = validating(64);
  Damaged* unused = nullptr;
  const auto pair = side(options, true, &unused);
  const Memory memory = pair->endpoint().memory();
  EXPECT_NE(pair->connect({{}, memory}).find("another number of queue pairs"), std::string::npos);
  EXPECT_NE(pair->connect({{std::vector<std::byte>(512)}, memory}), "");
  EXPECT_NE(pair->connect({{std::vector<std::byte>(8)}, {memory.addr, 64, memory.rkey}}).find("too small"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, Loops, testing::Values("shm", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rdma_rpc::perf
