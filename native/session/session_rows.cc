// See session_rows.h.
#include "session/session_rows.h"

#include <algorithm>
#include <cstring>

#include "session/session_table.h"

namespace rdma_rpc::session {

void SessionRows::opened(std::uint32_t index) {
  if (index >= entries_.size()) entries_.resize(std::size_t{index} + 1);
  take_row(index);
}

void SessionRows::closed(std::uint32_t index) {
  Entry& left = entries_[index];
  if (left.row != kNone) {
    page_.sessions()[left.row] = {};
    owners_[left.row] = kNone;
  }
  left = {};
}

void SessionRows::report(const SessionTable& sessions) {
  const auto free = static_cast<std::size_t>(std::ranges::count(owners_, kNone));
  // Sessions that found no free row when they were opened take rows of the counters page that have been freed
  // since.
  if (free != 0 && sessions.size() > owners_.size() - free) {
    for (std::uint32_t index = 0; index < entries_.size(); ++index) {
      if (sessions.at(index) != nullptr && entries_[index].row == kNone) take_row(index);
    }
  }
  telemetry::SessionRow* rows = page_.sessions();
  for (std::size_t row = 0; row < owners_.size(); ++row) {
    if (owners_[row] == kNone) continue;
    if (const Session* session = sessions.at(owners_[row])) session->report(rows[row]);
  }
}

/// Takes the first free row of the counters page, if any, for the session at this table index.
void SessionRows::take_row(std::uint32_t index) {
  const auto free = std::ranges::find(owners_, kNone);
  if (free == owners_.end()) return;
  *free = index;
  entries_[index].row = static_cast<std::uint32_t>(free - owners_.begin());
  write_name(entries_[index]);
}

void SessionRows::name(std::uint32_t index, std::string_view peer, std::uint32_t security) {
  entries_[index].peer = peer.substr(0, telemetry::kPeerNameBytes - 1);
  entries_[index].security = security;
  write_name(entries_[index]);
}

void SessionRows::write_name(const Entry& entry) {
  if (entry.row == kNone) return;
  telemetry::SessionRow& row = page_.sessions()[entry.row];
  row.security = entry.security;
  std::memcpy(row.peer, entry.peer.data(), entry.peer.size());
  std::memset(row.peer + entry.peer.size(), 0, telemetry::kPeerNameBytes - entry.peer.size());
}

std::string_view SessionRows::name_of(std::uint32_t index) const {
  return index < entries_.size() ? std::string_view(entries_[index].peer) : "";
}

}  // namespace rdma_rpc::session
