// What the counters page says of a context's sessions. See context.h; on its thread, a few times a second.
#include <algorithm>
#include <cstring>

#include "session/context.h"

namespace rdma_rpc::session {

void Context::report_sessions() {
  telemetry::SessionRow* rows = page_->sessions();
  const std::size_t count = std::min<std::size_t>(places_.size(), telemetry::kSessionRows);
  for (std::size_t i = 0; i < count; ++i) {
    if (places_[i].session != nullptr) places_[i].session->report(rows[i]);
  }
}

void Context::name_session(std::uint32_t number, std::string_view peer, std::uint32_t security) {
  const std::uint32_t place = number & (kSessionPlaces - 1);
  if (place >= telemetry::kSessionRows || find(number) == nullptr) return;
  page_->sessions()[place].security = security;
  char* name = page_->sessions()[place].peer;
  const std::size_t bytes = std::min(peer.size(), telemetry::kPeerNameBytes - 1);
  std::memcpy(name, peer.data(), bytes);
  std::memset(name + bytes, 0, telemetry::kPeerNameBytes - bytes);
}

std::string_view Context::name_of_session(std::uint32_t number) {
  const std::uint32_t place = number & (kSessionPlaces - 1);
  return place < telemetry::kSessionRows ? page_->sessions()[place].peer : "";
}

void Context::forget_session(std::uint32_t place) {
  if (place < telemetry::kSessionRows) page_->sessions()[place] = {};
}

}  // namespace rdma_rpc::session
