// Tests the lines that `rdma-rpc perf` and its measuring program exchange (perf/program/words.h).
#include "perf/program/words.h"

#include <gtest/gtest.h>

namespace rdma_rpc::perf {
namespace {

TEST(Words, HasTheContentsOfALine) {
  const Words words("run verb=write&bytes=64&latency=true&messages=18446744073709551615");
  EXPECT_EQ(words.name(), "run");
  EXPECT_EQ(words.text("verb"), "write");
  EXPECT_EQ(words.small("bytes"), 64U);
  EXPECT_TRUE(words.is("latency"));
  EXPECT_EQ(words.number("messages"), UINT64_MAX);
}

TEST(Words, MissingEntriesAreEmpty) {
  const Words words("stop");
  EXPECT_EQ(words.name(), "stop");
  EXPECT_EQ(words.text("expected"), "");
  EXPECT_EQ(words.number("expected"), 0U);
  EXPECT_FALSE(words.is("expected"));
  EXPECT_FALSE(words.has("expected"));
}

TEST(Words, TakeAnyLine) {
  for (const char* line : {"", " ", "&", "a =", "a b", "a b&&c", "a b=%", "a b=%4", "a b=%zz", "a =x&=y"}) {
    const Words words(line);
    EXPECT_EQ(words.number("b"), 0U) << line;
  }
  EXPECT_EQ(Words("a b=%zz+%4").text("b"), "%zz %4");
}

TEST(Words, ALineCanContainAnyText) {
  std::string all;
  for (int code = 0; code < 256; ++code) all.push_back(static_cast<char>(code));
  const std::string line = Line("failed").text("why", all).number("peakNs", 0.25).all();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Words words(line.substr(0, line.size() - 1));
  EXPECT_EQ(words.text("why"), all);
  EXPECT_EQ(words.text("peakNs"), "0.25");
}

}  // namespace
}  // namespace rdma_rpc::perf
