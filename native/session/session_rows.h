// Assigns the rows of the counters page to sessions, and keeps the names of their peers for the page. Rows
// are not tied to table entries: after many sessions the few live ones may all have high indices. A session
// that finds no free row is only counted, and gets a row when one is freed. Context owns this object and
// calls it a few times a second, on the context's thread.
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

  /// opened() assigns a row to the session in this table entry; closed() releases the row when the session
  /// has ended.
  void opened(std::uint32_t index);
  void closed(std::uint32_t index);
  /// `security` is the value for SessionRow.
  void name(std::uint32_t index, std::string_view peer, std::uint32_t security);
  /// Returns the name of the session, or "" when it has none yet.
  std::string_view name_of(std::uint32_t index) const;
  /// Writes the rows of the sessions to the page.
  void report(const SessionTable& sessions);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Entry {
    std::uint32_t row = kNone;
    /// The name is written to the page as soon as the session has a row.
    std::uint32_t security = 0;
    std::string peer{};
  };
  void take_row(std::uint32_t index);
  void write_name(const Entry& entry);

  telemetry::CountersPage& page_;
  std::array<std::uint32_t, telemetry::kSessionRows> owners_;  ///< the table entry of the session in each row
  std::vector<Entry> entries_;                                 ///< by table index
};

}  // namespace rdma_rpc::session
