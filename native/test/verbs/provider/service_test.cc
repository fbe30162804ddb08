// Tests the attributes that queue pairs get from options and from peers: quality of service, partition, and
// how often to retry a peer that is not ready. The connections are made by rdma_cm and over the sideband. The
// tests also use devices that lack a required feature. The error must then state the real reason.
#include <gtest/gtest.h>

#include "verbs/devices/ends.h"
#include "verbs/provider/provider.h"

namespace rdma_rpc::session::test {
namespace {

using fabric::VerbsConnect;
using fabric::VerbsOptions;

constexpr std::uint8_t kTos = 0x20, kTrafficClass = 0x68, kServiceLevel = 3;

class Service : public testing::TestWithParam<VerbsConnect> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_devices(); !why.empty()) GTEST_SKIP() << "not run: " << why;
    if (guest_link() == "siw" && GetParam() == VerbsConnect::sideband)
      GTEST_SKIP() << "not run: an iWARP device is connected by rdma_cm only";
  }

  static std::shared_ptr<fabric::Device> open(std::size_t end, VerbsOptions options) {
    VerbsOptions all = options_of(end);
    all.connect = GetParam();
    all.rnr_retry = options.rnr_retry;
    all.on_demand = options.on_demand;
    all.tos = options.tos;
    all.traffic_class = options.traffic_class;
    all.service_level = options.service_level;
    std::string error;
    std::shared_ptr<fabric::Device> device = fabric::open_verbs_device(all, &error);
    EXPECT_NE(device, nullptr) << error;
    return device;
  }

  /// Connects two sessions on devices with these options, and checks that calls work.
  void connect(VerbsOptions client, VerbsOptions server) {
    Ends ends(open(kClientEnd, client), open(kServerEnd, server));
    // The queue pairs of the trials with which devices are opened are destroyed, and their addresses in
    // memory may be reused.
    provider_.script().queue_pairs.clear();
    provider_.script().told.clear();
    const Link link = ends.connect();
    ASSERT_EQ(provider_.script().queue_pairs.size(), 2u);
    for (const std::size_t end : {kClientEnd, kServerEnd})
      queue_pairs_[end] = provider_.script().queue_pairs[end];
    ends.expect_works(link);
    EXPECT_EQ(ends.finish(), std::vector<std::string>{});
  }

  /// Returns the last attributes that the queue pair of that end was given under this bit of the mask, or
  /// null. The client's queue pair is created first.
  const ibv_qp_attr* told(std::size_t end, int bit) {
    const ibv_qp_attr* last = nullptr;
    for (const Script::Told& each : provider_.script().told) {
      if (each.qp == queue_pairs_[end] && (each.mask & bit) != 0) last = &each.attributes;
    }
    return last;
  }

  Provider provider_;
  const ibv_qp* queue_pairs_[2] = {};
};

TEST_P(Service, ReachesTheQueuePairsOfBothEnds) {
  VerbsOptions options;
  options.tos = kTos;
  options.traffic_class = kTrafficClass;
  options.service_level = kServiceLevel;
  options.rnr_retry = 5;
  connect(options, options);
  if (GetParam() == VerbsConnect::cm) {
    EXPECT_FALSE(provider_.script().tos.empty());
    for (const std::uint8_t tos : provider_.script().tos) EXPECT_EQ(tos, kTos);
  }
  if (guest_link() == "siw") return;  // TCP has no path for queue pairs
  for (const std::size_t end : {kClientEnd, kServerEnd}) {
    SCOPED_TRACE(end);
    const ibv_qp_attr* path = told(end, IBV_QP_AV);
    ASSERT_NE(path, nullptr);
    EXPECT_EQ(path->ah_attr.grh.traffic_class, kTrafficClass);
    EXPECT_EQ(path->ah_attr.sl, kServiceLevel);
    ASSERT_NE(told(end, IBV_QP_RNR_RETRY), nullptr);
    EXPECT_EQ(told(end, IBV_QP_RNR_RETRY)->rnr_retry, 5);
  }
}

TEST_P(Service, TheTypeOfServiceReplacesAMissingTrafficClass) {
  if (guest_link() == "siw") GTEST_SKIP() << "not run: TCP has no queue pair's path";
  VerbsOptions options;
  options.tos = kTos;
  connect(options, options);
  for (const std::size_t end : {kClientEnd, kServerEnd}) ASSERT_NE(told(end, IBV_QP_AV), nullptr);
  for (const std::size_t end : {kClientEnd, kServerEnd})
    EXPECT_EQ(told(end, IBV_QP_AV)->ah_attr.grh.traffic_class, kTos);
}

TEST_P(Service, APeerThatPagesIsRetriedForEver) {
  if (guest_link() == "siw") GTEST_SKIP() << "not run: TCP knows no receiver that is not ready";
  VerbsOptions pages;
  pages.on_demand = true;
  connect(pages, {});
  EXPECT_EQ(told(kServerEnd, IBV_QP_RNR_RETRY)->rnr_retry, 7);
  EXPECT_EQ(told(kClientEnd, IBV_QP_RNR_RETRY)->rnr_retry, 0);
}

TEST_P(Service, BothEndsTakeThePartitionThatTheConnectionManagerNames) {
  if (guest_link() == "siw" || GetParam() == VerbsConnect::sideband)
    GTEST_SKIP() << "not run: nobody names a partition there";
  provider_.script().pkey_index = 3;
  connect({}, {});
  for (const std::size_t end : {kClientEnd, kServerEnd})
    EXPECT_EQ(told(end, IBV_QP_PKEY_INDEX)->pkey_index, 3) << end;
}

INSTANTIATE_TEST_SUITE_P(By, Service, testing::Values(VerbsConnect::cm, VerbsConnect::sideband),
                         [](const auto& info) {
                           return std::string(info.param == VerbsConnect::cm ? "cm" : "sideband");
                         });

/// Returns the reason why a device cannot be used, as a context reports it.
std::string why_not() {
  std::string error;
  std::shared_ptr<fabric::Device> device = fabric::open_verbs_device(options_of(kClientEnd), &error);
  if (device == nullptr) return error;
  Context::open(std::move(device), {}, &error);
  return error;
}

TEST(DevicesThatLack, NameIt) {
  if (const std::string why = why_no_devices(); !why.empty()) GTEST_SKIP() << "not run: " << why;
  Provider provider;
  EXPECT_EQ(why_not(), "");
  provider.script().inline_max = 0;
  EXPECT_NE(why_not().find("cannot be used: it sends 0 bytes inline (max_inline_data), and 32 are needed"),
            std::string::npos)
      << why_not();
  provider.script().refuses_qps = EOPNOTSUPP;
  EXPECT_NE(why_not().find("has no reliable connections (RC): Operation not supported"), std::string::npos)
      << why_not();
  provider.script().refuses_qps = ENOMEM;
  EXPECT_NE(why_not().find("cannot create a queue pair: Cannot allocate memory"), std::string::npos)
      << why_not();
}

}  // namespace
}  // namespace rdma_rpc::session::test
