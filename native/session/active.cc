// Which sessions a turn looks at beside those that something has happened to: by time limits, while they
// connect, while they hold calls; and the one way into the sets for all of them. See session_set.h.
#include <array>
#include <string>
#include <utility>

#include "session/context.h"

namespace rdma_rpc::session {

namespace {
/// Every step for all of them before the next one.
template <class Batch, class Step>
void in_steps(const Batch& batch, std::size_t count, Step&& step) {
  for (int at = 0; at < Session::kExpectSteps; ++at) {
    for (std::size_t i = 0; i < count; ++i) step(at, batch[i]);
  }
}
}  // namespace

/// What calls on many sessions touch is in no cache. Where all are of one session it is.
void Context::expect_submissions(std::int32_t count) {
  struct Next {
    const Session* session;
    std::uint32_t slot;
  };
  std::array<Next, kSubmissionsMax> batch;
  std::size_t found = 0;
  std::uint32_t before = kAllSessions;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t* words = submissions_.data() + std::ptrdiff_t{i} * boundary::sub::words;
    const auto number = static_cast<std::uint32_t>(words[boundary::sub::session]);
    if (number == std::exchange(before, number)) continue;
    if (const Session* session = at_place(number))
      batch[found++] = {session, wire::call_slot(static_cast<std::uint32_t>(words[boundary::sub::call]))};
  }
  if (found < 2) return;
  in_steps(batch, found, [](int step, const Next& next) { next.session->expect(step, next.slot); });
}

void Context::expect_completions(std::size_t count) {
  struct Next {
    const Session* session;
    const fabric::Wc* wc;
  };
  std::array<Next, kEventsMax> batch;
  std::size_t found = 0;
  std::uint32_t before = kAllSessions;
  for (std::size_t i = 0; i < count; ++i) {
    const fabric::Wc& wc = completions_[i];
    const auto own = static_cast<std::uint32_t>((wc.wr_id & ~kReceiveBit) >> 32);
    const std::uint32_t number = own == kAllSessions ? wc.tag : own;
    if (number == std::exchange(before, number)) continue;
    if (const Session* session = at_place(number)) batch[found++] = {session, &wc};
  }
  if (found < 2) return;
  in_steps(batch, found, [](int step, const Next& next) { next.session->expect_receive(step, *next.wc); });
}

void Context::check_held() {
  if (shared_->now_ns - held_ns_ < kHoldCheckNs) return;
  held_ns_ = shared_->now_ns;
  unfinished_ = true;  // READs that have stopped counting leave room for others
  const auto visit = [this](Session& session) {
    session.check_held();
    keep(session);
  };
  looked_at_ += shared_->sets.holding.visit(finder(), visit);
  give_memory_up();
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
