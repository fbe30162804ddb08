// Which sessions of a context a turn looks at beside those that something has happened to: by time limits,
// while they connect, while they hold calls; and the one way into the sets for all of them (session_set.h
// says the rule). Owned by Context, on its thread.
#pragma once

#include <cstdint>
#include <string>

#include "session/session_table.h"
#include "session/shared.h"

namespace rdma_rpc::session {

class ActiveSessions {
 public:
  ActiveSessions(Shared& shared, SessionTable& sessions) : shared_(shared), sessions_(sessions) {}

  /// Something has been done to the session: it is in every set that it belongs to from now on.
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

  /// finish_turn() of those that something has happened to. Returns whether there is more to do at once.
  bool finish_turn();
  /// Posts what JS has submitted, and leaves the sessions where they are.
  void post();
  /// Those that are connecting. A poll moves connections on; these have sent or received nothing yet.
  void check_connecting();
  /// Those whose time limits run.
  void check_timeouts();
  /// Those that hold calls or move bulk data, every kHoldCheckNs. Returns whether they have been looked at.
  bool check_held();

  /// Somebody must call Context::progress() every few milliseconds although no completion comes.
  bool timeouts_pending() const { return timeouts_pending_; }
  /// Somebody must call it every kHoldCheckNs.
  bool holds() const { return holds_; }
  /// Sessions that turns have looked at, counting on: as many as had something to do.
  std::uint64_t looked_at() const { return looked_at_; }
  /// Between turns: the first session that has something to do and that no turn would look at, and why. Empty
  /// when all is well. For tests.
  std::string forgotten() const;

 private:
  Shared& shared_;
  SessionTable& sessions_;
  std::uint64_t looked_at_ = 0;
  std::uint64_t held_ns_ = 0;  ///< when check_held() has looked last
  bool timeouts_pending_ = false, holds_ = false;
};

}  // namespace rdma_rpc::session
