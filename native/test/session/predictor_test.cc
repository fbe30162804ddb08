// Tests how the size of a method's next response is predicted from its last responses. The tests use no
// sessions.
#include "session/predictor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rdma_rpc::session::test {
namespace {

constexpr std::uint32_t kMethod = 7;
constexpr std::uint32_t kMiB = 1u << 20;
constexpr RequestSize kSmall = RequestSize::small, kLarge = RequestSize::large;

void learn_large(ResponsePredictor& predictor, std::uint32_t bytes) {
  predictor.learn(kMethod, kSmall, bytes, true);
}

TEST(Predictor, ExpectsNothingOfAMethodOfSmallAnswers) {
  ResponsePredictor predictor;
  for (int i = 0; i < 100; ++i) predictor.learn(kMethod, kSmall, 100, false);
  EXPECT_EQ(predictor.expected(kMethod, kSmall), 0u);
}

TEST(Predictor, ExpectsAnswersOfOneSizeAsLargeAsTheyAre) {
  for (const std::uint32_t bytes : {8192u, 65'528u, 65'536u, 100'000u, kMiB, 64 * kMiB}) {
    ResponsePredictor predictor;
    learn_large(predictor, bytes);
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(predictor.expected(kMethod, kSmall), bytes) << "answer " << i;
      learn_large(predictor, bytes);
    }
  }
}

TEST(Predictor, IsNotMisledByFewSmallerOnesAmongLargeOnes) {
  ResponsePredictor predictor;
  learn_large(predictor, kMiB);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 4; ++i) predictor.learn(kMethod, kSmall, 100, false);
    learn_large(predictor, kMiB / 2);
    EXPECT_EQ(predictor.expected(kMethod, kSmall), kMiB);
    learn_large(predictor, kMiB);
  }
}

TEST(Predictor, FollowsAnswersThatHaveBecomeSmallerAndForgetsThem) {
  ResponsePredictor predictor;
  learn_large(predictor, kMiB);
  for (int i = 0; i < 16; ++i) learn_large(predictor, 100'000);
  EXPECT_EQ(predictor.expected(kMethod, kSmall), 100'000u);
  for (int i = 0; i < 16; ++i) predictor.learn(kMethod, kSmall, 100, false);
  EXPECT_EQ(predictor.expected(kMethod, kSmall), 0u);
}

/// Method numbers are hashes, so two may share an entry.
TEST(Predictor, KeepsTwoMethodsThatShareAnEntryApart) {
  constexpr std::uint32_t kOne = 0x00340012, kOther = 0x00560012;
  ResponsePredictor predictor;
  for (int i = 0; i < 10; ++i) {
    predictor.learn(kOne, kSmall, kMiB, true);
    predictor.learn(kOther, kSmall, 100'000, true);
    EXPECT_EQ(predictor.expected(kOne, kSmall), kMiB) << i;
    EXPECT_EQ(predictor.expected(kOther, kSmall), 100'000u) << i;
  }
}

/// A method whose responses are as large as its requests.
TEST(Predictor, ExpectsNothingOfSmallRequestsBesideLargeOnes) {
  ResponsePredictor predictor;
  for (int i = 0; i < 40; ++i) {
    predictor.learn(kMethod, kLarge, kMiB, true);
    predictor.learn(kMethod, kSmall, 32, false);
    EXPECT_EQ(predictor.expected(kMethod, kLarge), kMiB) << i;
    EXPECT_EQ(predictor.expected(kMethod, kSmall), 0u) << i;
  }
}

TEST(Predictor, LearnsFromDeclaredSizes) {
  ResponsePredictor predictor;
  predictor.expect(kMethod, kMiB);
  EXPECT_EQ(predictor.expected(kMethod, kLarge), kMiB);
  EXPECT_EQ(predictor.expected(kMethod, kSmall), kMiB);
  for (int i = 0; i < 16; ++i) learn_large(predictor, 200'000);
  EXPECT_EQ(predictor.expected(kMethod, kSmall), 200'000u);
  EXPECT_EQ(predictor.expected(kMethod + 1, kSmall), 0u);
}

}  // namespace
}  // namespace rdma_rpc::session::test
