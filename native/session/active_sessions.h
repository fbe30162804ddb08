// Keeps the sets of sessions that one iteration of the loop visits: sessions with something to do, sessions
// that are connecting, sessions with running time limits, and sessions that hold calls. Sessions enter the
// sets only through this class (session_set.h has the rule). Context owns this object and uses it on the
// context's thread.
#pragma once

#include <cstdint>
#include <string>

#include "session/session_table.h"
#include "session/shared.h"

namespace rdma_rpc::session {

class ActiveSessions {
 public:
  ActiveSessions(Shared& shared, SessionTable& sessions) : shared_(shared), sessions_(sessions) {}

  /// Adds the session to every set that it belongs to. This function is called when the state of the session
  /// has changed.
  void keep(Session& session) {
    const SetBits due = session.due();
    shared_.sets.put(due, session.sets(), session.number());
    timeouts_pending_ = timeouts_pending_ || (due & kTimed) != 0;
    holds_ = holds_ || (due & kHolding) != 0;
  }
  /// Calls `visit(session)` for each session of the set, and keeps the sessions that still belong to the set.
  template <class Visit>
  void visit(SessionSet& set, Visit&& visit) {
    looked_at_ += set.visit([this](std::uint32_t number) { return sessions_.find(number); },
                            [&](Session& session) {
                              visit(session);
                              keep(session);
                            });
  }

  /// Calls finish_turn() of the sessions with something to do. Returns true when there is more to do at once.
  bool finish_turn();
  /// Posts what JS has submitted. The sessions stay in their sets.
  void post();
  /// Visits the sessions that are connecting. Such sessions have sent or received nothing yet. Polling them
  /// advances their connections.
  void check_connecting();
  /// Visits the sessions with running time limits.
  void check_timeouts();
  /// Visits the sessions that hold calls or move bulk data, once every kHoldCheckNs. Returns whether this
  /// call has visited them.
  bool check_held();

  /// Returns true while Context::progress() must be called every few milliseconds although no completion
  /// arrives.
  bool timeouts_pending() const { return timeouts_pending_; }
  /// Returns true while Context::progress() must be called every kHoldCheckNs.
  bool holds() const { return holds_; }
  /// Returns the total number of visits to sessions by turns. The number grows with the number of sessions
  /// that have something to do, independent of the total number of sessions.
  std::uint64_t looked_at() const { return looked_at_; }
  /// Returns an error text about the first session that has something to do but is in no set, or "" when
  /// there is no such session. This function is called between turns, by tests.
  std::string forgotten() const;

 private:
  Shared& shared_;
  SessionTable& sessions_;
  std::uint64_t looked_at_ = 0;
  std::uint64_t held_ns_ = 0;  ///< the time of the last visit by check_held()
  bool timeouts_pending_ = false, holds_ = false;
};

}  // namespace rdma_rpc::session
