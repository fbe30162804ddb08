// Tests the loops of `rdma-rpc perf` on NICs that differ: each operation carries every byte, with polling and
// with events. Both sides are in this process, each on its own thread.
#include "perf/pair.h"

#include <future>
#include <string>
#include <utility>

#include "nic/device/profiles.h"
#include "nic/open.h"
#include "perf/fabric_endpoint.h"

namespace rdma_rpc::nic {
namespace {

using namespace rdma_rpc::perf;

constexpr std::uint64_t kMessages = 40;

class Perf : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Pair> side(std::size_t which, PairOptions options) {
    options.active = which == 0;
    std::string error;
    // As with the command, the first message may come before the peer has posted its receives.
    fabric::VerbsOptions endless;
    endless.rnr_retry = 7;
    auto endpoint = make_fabric_endpoint(open(*nics_[which], endless), Pair::needs(options), &error);
    EXPECT_NE(endpoint, nullptr) << error;
    auto pair = endpoint == nullptr ? nullptr : Pair::open(std::move(endpoint), options, &error);
    EXPECT_NE(pair, nullptr) << error;
    return pair;
  }
  void connect(const PairOptions& options) {
    client_ = side(0, options);
    server_ = side(1, options);
    ASSERT_TRUE(client_ != nullptr && server_ != nullptr);
    const auto address = [&](Pair& pair) {
      return PeerAddress{{pair.endpoint().address(0)}, pair.endpoint().memory()};
    };
    const PeerAddress client = address(*client_), server = address(*server_);
    ASSERT_EQ(server_->connect(client), "");
    ASSERT_EQ(client_->connect(server), "");
    auto other = std::async(std::launch::async, [&] { return server_->exchange_connect_messages(); });
    EXPECT_EQ(client_->exchange_connect_messages(), "");
    EXPECT_EQ(other.get(), "");
  }
  void expect_carries(Step step) {
    Step passive = step;
    passive.measures = false;
    step.receives = false;
    server_->prepare(passive);
    client_->prepare(step);
    auto other = std::async(std::launch::async, [&] { return server_->run(passive, [](std::uint64_t) {}); });
    const Outcome client = client_->run(step, [&](std::uint64_t messages) {
      client_->stop();
      server_->stop(messages);
    });
    if (!client.error.empty()) server_->stop();
    Outcome server = other.get();
    server_->check_written(passive, client.messages, &server);
    EXPECT_EQ(client.error, "");
    EXPECT_EQ(server.error, "");
    EXPECT_EQ(client.messages, kMessages);
    EXPECT_EQ(client.corrupt + server.corrupt, 0u) << client.first_corrupt << server.first_corrupt;
  }

  Machine machine_;
  Nic* nics_[2] = {&machine_.add(named("nic0", profile_named(GetParam()))),
                   &machine_.add(named("nic1", profile_named(GetParam())))};
  std::unique_ptr<Pair> client_, server_;
};

TEST_P(Perf, CarriesEachOperationWhole) {
  for (const Verb verb : {Verb::send, Verb::write, Verb::read}) {
    for (const bool latency : {true, false}) {
      PairOptions options;
      options.bytes_max = 5000;
      options.depth = options.receive_depth = 16;
      options.validate = true;
      // A WRITE whose latency is measured is detected in memory, without events.
      options.events = !(verb == Verb::write && latency);
      for (const std::uint32_t bytes : {8u, 5000u}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(verb)) + (latency ? " lat " : " bw ") +
                     std::to_string(bytes));
        connect(options);
        if (testing::Test::HasFailure()) return;
        expect_carries(
            {.verb = verb, .latency = latency, .bytes = bytes, .messages = kMessages, .signal_every = 4});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nic, Perf, testing::Values("mlx5", "irdma", "bnxt_re", "hns"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rdma_rpc::nic
