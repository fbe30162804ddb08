// Which row of the counters page each session has, and what the page calls its peer. Rows are not tied to
// table entries: after many sessions the few live ones may all have high indices. A session that finds no row
// is counted only, and gets one when one comes free. Owned by Context, on its thread, a few times a second.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/counters_page.h"

namespace rdma_rpc::session {

class SessionTable;

class SessionRows {
 public:
  explicit SessionRows(telemetry::CountersPage& page) : page_(page) { owners_.fill(kNone); }

  /// Called when the session in this table entry has been opened, and when it has ended.
  void opened(std::uint32_t index);
  void closed(std::uint32_t index);
  /// `security`: as SessionRow has it.
  void name(std::uint32_t index, std::string_view peer, std::uint32_t security);
  /// Empty when the session has no name yet.
  std::string_view name_of(std::uint32_t index) const;
  /// Writes what the page says of sessions.
  void report(const SessionTable& sessions);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Entry {
    std::uint32_t row = kNone;
    /// For the page, as soon as there is a row.
    std::uint32_t security = 0;
    std::string peer{};
  };
  void take_row(std::uint32_t index);
  void write_name(const Entry& entry);

  telemetry::CountersPage& page_;
  std::array<std::uint32_t, telemetry::kSessionRows> owners_;  ///< the table entry of each row's session
  std::vector<Entry> entries_;                                 ///< by the index of the table entry
};

}  // namespace rdma_rpc::session
