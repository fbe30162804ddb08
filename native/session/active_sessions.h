// The sets of sessions that a turn visits: those with something to do, those that are connecting, those with
// time limits, and those that hold calls. All sessions enter the sets through this class (session_set.h has
// the rule). Owned by Context, on its thread.
#pragma once

#include <cstdint>
#include <string>

#include "session/session_table.h"
#include "session/shared.h"

namespace rdma_rpc::session {

class ActiveSessions {
 public:
  ActiveSessions(Shared& shared, SessionTable& sessions) : shared_(shared), sessions_(sessions) {}

  /// Called when something has changed in a session: adds it to every set that it belongs to.
  void keep(Session& session) {
    const SetBits due = session.due();
    shared_.sets.put(due, session.sets(), session.number());
    timeouts_pending_ = timeouts_pending_ || (due & kTimed) != 0;
    holds_ = holds_ || (due & kHolding) != 0;
  }
  /// Calls `visit(session)` for each session of the set, and keeps what still belongs to it.
  template <class Visit>
  void visit(SessionSet& set, Visit&& visit) {
    looked_at_ += set.visit([this](std::uint32_t number) { return sessions_.find(number); },
                            [&](Session& session) {
                              visit(session);
                              keep(session);
                            });
  }

  /// Calls finish_turn() of the sessions with something to do. Returns whether there is more to do at once.
  bool finish_turn();
  /// Posts what JS has submitted, and leaves the sessions where they are.
  void post();
  /// Visits the sessions that are connecting, which have sent or received nothing yet. Polling advances their
  /// connections.
  void check_connecting();
  /// Visits the sessions with running time limits.
  void check_timeouts();
  /// Visits the sessions that hold calls or move bulk data, every kHoldCheckNs. Returns whether it has done
  /// so.
  bool check_held();

  /// True while Context::progress() must be called every few milliseconds although no completion arrives.
  bool timeouts_pending() const { return timeouts_pending_; }
  /// True while it must be called every kHoldCheckNs.
  bool holds() const { return holds_; }
  /// Total number of sessions that turns have visited, which is the number of those with something to do.
  std::uint64_t looked_at() const { return looked_at_; }
  /// Returns, between turns, the first session that has something to do but is in no set, and why; "" when
  /// there is none. For tests.
  std::string forgotten() const;

 private:
  Shared& shared_;
  SessionTable& sessions_;
  std::uint64_t looked_at_ = 0;
  std::uint64_t held_ns_ = 0;  ///< when check_held() has looked last
  bool timeouts_pending_ = false, holds_ = false;
};

}  // namespace rdma_rpc::session
