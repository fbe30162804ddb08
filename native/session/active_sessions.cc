// See active_sessions.h.
#include "session/active_sessions.h"

#include <vector>

namespace rdma_rpc::session {

bool ActiveSessions::finish_turn() {
  bool more = false;
  holds_ = !shared_.sets.holding.empty();
  visit(shared_.sets.touched, [&more](Session& session) {
    if (session.finish_turn()) more = true;
  });
  return more;
}

void ActiveSessions::post() {
  const std::vector<std::uint32_t>& touched = shared_.sets.touched.numbers();
  for (std::size_t i = 0; i < touched.size(); ++i) {
    Session* session = sessions_.find(touched[i]);
    if (session == nullptr) continue;
    ++looked_at_;
    session->post();
    keep(*session);
  }
}

void ActiveSessions::check_connecting() {
  visit(shared_.sets.connecting, [](Session& session) { session.check_connected(); });
}

void ActiveSessions::check_timeouts() {
  timeouts_pending_ = false;
  visit(shared_.sets.timed, [](Session& session) { session.check_timeouts(); });
}

bool ActiveSessions::check_held() {
  if (shared_.now_ns - held_ns_ < kHoldCheckNs) return false;
  held_ns_ = shared_.now_ns;
  visit(shared_.sets.holding, [](Session& session) { session.check_held(); });
  return true;
}

std::string ActiveSessions::forgotten() const {
  for (std::uint32_t index = 0; index < sessions_.entries(); ++index) {
    Session* session = sessions_.at(index);
    if (session == nullptr) continue;
    const SetBits missing = session->due() & ~session->sets();
    const bool no_timer = (session->due() & kTimed) != 0 && !timeouts_pending_;
    if (missing != 0 || no_timer || session->out_of_line())
      return "session " + std::to_string(session->number()) + " is missing from sets " +
             std::to_string(missing) + (no_timer ? ", has no timer" : "") +
             (session->out_of_line() ? ", is out of line" : "");
  }
  return "";
}

}  // namespace rdma_rpc::session
