// What the counters page says of a context's sessions. See context.h; on its thread, a few times a second.
#include <algorithm>
#include <cstring>

#include "session/context.h"

namespace rdma_rpc::session {

void Context::report_sessions() {
  const auto free = static_cast<std::size_t>(std::ranges::count(row_places_, kNone));
  // Those that came when there was none left take what has come free since.
  if (free != 0 && session_count_ > row_places_.size() - free) {
    for (std::uint32_t place = 0; place < places_.size(); ++place) {
      if (places_[place].session != nullptr && places_[place].row == kNone) take_row(place);
    }
  }
  telemetry::SessionRow* rows = page_->sessions();
  for (std::size_t row = 0; row < row_places_.size(); ++row) {
    if (row_places_[row] == kNone) continue;
    if (const auto& session = places_[row_places_[row]].session) session->report(rows[row]);
  }
}

/// The first that is free; with none it is counted only.
void Context::take_row(std::uint32_t place) {
  const auto free = std::ranges::find(row_places_, kNone);
  if (free == row_places_.end()) return;
  *free = place;
  places_[place].row = static_cast<std::uint32_t>(free - row_places_.begin());
  write_name(place);
}

void Context::name_session(std::uint32_t number, std::string_view peer, std::uint32_t security) {
  if (find(number) == nullptr) return;
  const std::uint32_t index = number & (kSessionPlaces - 1);
  places_[index].peer = peer.substr(0, telemetry::kPeerNameBytes - 1);
  places_[index].security = security;
  write_name(index);
}

void Context::write_name(std::uint32_t place) {
  const Place& named = places_[place];
  if (named.row == kNone) return;
  telemetry::SessionRow& row = page_->sessions()[named.row];
  row.security = named.security;
  std::memcpy(row.peer, named.peer.data(), named.peer.size());
  std::memset(row.peer + named.peer.size(), 0, telemetry::kPeerNameBytes - named.peer.size());
}

std::string_view Context::name_of_session(std::uint32_t number) const {
  const std::uint32_t place = number & (kSessionPlaces - 1);
  return place < places_.size() ? std::string_view(places_[place].peer) : "";
}

void Context::forget_session(std::uint32_t place) {
  Place& left = places_[place];
  if (left.row != kNone) {
    page_->sessions()[left.row] = {};
    row_places_[left.row] = kNone;
  }
  left.row = kNone;
  left.security = 0;
  left.peer.clear();
}

}  // namespace rdma_rpc::session
