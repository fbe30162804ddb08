// Tests the flight recorder: a session's entries in a ring are in order, even when the ring has wrapped or
// sessions share it. The reason of a session's end is kept.
#include "telemetry/recorder.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace rdma_rpc::telemetry {
namespace {

/// A header with the same bytes as wire::Header.
struct Header {
  std::uint8_t type = 1, flags = 2;
  std::uint16_t credits = 3;
  std::uint32_t call = 4, method = 5, timeout_us = 0;
};

class RecorderOfSessions : public testing::Test {
 protected:
  Recorder recorder(std::uint32_t session, std::uint32_t place) const {
    return {{rows_.get(), counts_.get()}, now_ns_, session, place};
  }
  static std::string text_of(const std::vector<EventRow>& rows) {
    std::string text;
    for (const EventRow& row : rows) {
      if (row.kind != EventKind::text) continue;
      const std::uint32_t words[] = {row.call, row.method, row.bytes, row.detail};
      text.append(reinterpret_cast<const char*>(words), sizeof words);
    }
    return text.c_str();
  }

  std::uint64_t now_ns_ = 1000;
  std::unique_ptr<EventRow[]> rows_{new EventRow[std::size_t{kEventRings} * kEventRows]{}};
  std::unique_ptr<std::uint64_t[]> counts_{new std::uint64_t[kEventRings]{}};
};

TEST_F(RecorderOfSessions, AFrameHasItsHeaderAndTheTimeOfItsIteration) {
  const Recorder session = recorder(7, 0);
  session.frame_in(Header{}, 64);
  now_ns_ = 2000;
  session.settle(4, 5, true, 9);
  const std::vector<EventRow> rows = session.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].kind, EventKind::frame_in);
  EXPECT_EQ(rows[0].at_ns, 1000u);
  EXPECT_EQ(rows[0].session, 7u);
  EXPECT_EQ(rows[0].type, 1);
  EXPECT_EQ(rows[0].flags, 2);
  EXPECT_EQ(rows[0].call, 4u);
  EXPECT_EQ(rows[0].method, 5u);
  EXPECT_EQ(rows[0].bytes, 64u);
  EXPECT_EQ(rows[0].detail, 3u);
  EXPECT_EQ(rows[1].kind, EventKind::settle);
  EXPECT_EQ(rows[1].at_ns, 2000u);
  EXPECT_EQ(rows[1].detail, 9u);
}

TEST_F(RecorderOfSessions, ARingKeepsTheLastRows) {
  const Recorder session = recorder(7, 3);
  for (std::uint32_t i = 0; i < 3 * kEventRows + 5; ++i) session.completion(0, i);
  const std::vector<EventRow> rows = session.rows();
  ASSERT_EQ(rows.size(), kEventRows);
  for (std::uint32_t i = 0; i < kEventRows; ++i) EXPECT_EQ(rows[i].detail, 2 * kEventRows + 5 + i);
}

TEST_F(RecorderOfSessions, SessionsBeyondTheRingsShareThemAndFindTheirOwn) {
  const Recorder one = recorder(1, 2), other = recorder(2, 2 + kEventRings), third = recorder(3, 4);
  for (std::uint32_t i = 0; i < 10; ++i) {
    one.completion(0, i);
    other.completion(0, 100 + i);
    third.completion(0, 200 + i);
  }
  for (const auto& [session, first] : {std::pair{one, 0u}, {other, 100u}, {third, 200u}}) {
    const std::vector<EventRow> rows = session.rows();
    ASSERT_EQ(rows.size(), 10u);
    for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(rows[i].detail, first + i);
  }
  EXPECT_EQ(counts_[2], 20u);
  EXPECT_EQ(counts_[4], 10u);
}

TEST_F(RecorderOfSessions, TheReasonOfAnEndIsKeptWhole) {
  for (const std::string& reason : {std::string("receive failed: wr_flush_err"), std::string(),
                                    std::string(16, 'x'), std::string(kReasonBytesMax, 'y')}) {
    const Recorder session = recorder(static_cast<std::uint32_t>(100 + reason.size()), 0);
    session.ended(reason);
    const std::vector<EventRow> rows = session.rows();
    ASSERT_FALSE(rows.empty());
    EXPECT_EQ(rows[0].kind, EventKind::ended);
    EXPECT_EQ(text_of(rows), reason);
  }
}

TEST_F(RecorderOfSessions, AReasonWithoutEndIsCut) {
  const Recorder session = recorder(9, 0);
  session.ended(std::string(100'000, 'z'));
  EXPECT_EQ(text_of(session.rows()), std::string(kReasonBytesMax, 'z'));
}

}  // namespace
}  // namespace rdma_rpc::telemetry
