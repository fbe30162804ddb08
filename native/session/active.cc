// Which sessions a turn looks at beside those that something has happened to: by time limits, while they
// connect, while they hold calls; and the one way into the sets for all of them. See session_set.h.
#include <string>

#include "session/context.h"

namespace rdma_rpc::session {

void Context::check_held() {
  if (shared_->now_ns - held_ns_ < kHoldCheckNs) return;
  held_ns_ = shared_->now_ns;
  const auto visit = [this](Session& session) {
    session.check_held();
    keep(session);
  };
  looked_at_ += shared_->sets.holding.visit(finder(), visit);
}

void Context::check_timeouts() {
  unfinished_ = true;
  timeouts_pending_ = false;
  const auto visit = [this](Session& session) {
    session.check_timeouts();
    keep(session);
  };
  looked_at_ += shared_->sets.timed.visit(finder(), visit);
}

/// The poll moves connections on; those that have sent or received nothing yet are looked at here.
void Context::check_connecting() {
  const auto visit = [this](Session& session) {
    session.check_connected();
    keep(session);
  };
  looked_at_ += shared_->sets.connecting.visit(finder(), visit);
}

/// Something has been done to the session: it is in every set that it belongs to now.
void Context::keep(Session& session) {
  const SetBits due = session.due();
  shared_->sets.put(due, session.sets(), session.number());
  timeouts_pending_ = timeouts_pending_ || (due & kTimed) != 0;
  holds_ = holds_ || (due & kHolding) != 0;
}

std::string Context::forgotten() const {
  for (const Place& place : places_) {
    if (place.session == nullptr) continue;
    const int missing = place.session->due() & ~place.session->sets();
    const bool no_timer = (place.session->due() & kTimed) != 0 && !timeouts_pending_;
    if (missing != 0 || no_timer || place.session->out_of_line())
      return "session " + std::to_string(place.session->number()) + " is missing from sets " +
             std::to_string(missing) + (no_timer ? ", has no timer" : "") +
             (place.session->out_of_line() ? ", is out of line" : "");
  }
  return "";
}

std::string Context::overdrawn() const {
  std::uint64_t granted = 0;
  for (const Place& place : places_) granted += place.session == nullptr ? 0 : place.session->granted();
  const std::uint32_t posted = shared_->shared_receives.posted();
  if (granted <= posted) return "";
  return std::to_string(granted) + " frames may come, and " + std::to_string(posted) +
         " shared receives are posted";
}

}  // namespace rdma_rpc::session
