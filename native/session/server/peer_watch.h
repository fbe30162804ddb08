// Watches the calls that wait for their peer. The watched calls are those whose request is being read, and
// those whose response the peer must accept or for which the peer must grant memory. Each call holds arena
// memory while it waits. The waiting time of a call is therefore limited by the deadline of the call, or by
// the end of a session whose peer moves too little. PeerWatch knows which calls wait, when the first of them
// is overdue, and how fast bulk data moves. ServerEndpoint owns the PeerWatch and ends the calls (late.cc),
// on the context's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "session/link/link.h"
#include "session/server/answers_under_way.h"
#include "session/server/reads_under_way.h"
#include "session/server/server_call.h"
#include "session/server/unread_streams.h"

namespace rdma_rpc::session {

/// Returns the time as the part " within 5 s" of an error text.
std::string within(std::uint64_t ns);

class PeerWatch {
 public:
  explicit PeerWatch(Link& link) : link_(link), shared_(link.shared()), reads_(link.shared().flow) {}

  ReadsUnderWay& reads() { return reads_; }
  AnswersUnderWay& answers() { return answers_; }
  UnreadStreams& unread() { return unread_; }
  const UnreadStreams& unread() const { return unread_; }

  /// begins() is called when the call has entered a state in which it waits for the peer. ends() is called
  /// before the call leaves that state.
  void begins(const ServerCall& call);
  void ends(const ServerCall& call);
  /// Returns true while a call waits for the peer, so that look() must be called.
  bool waits() const { return waiting_ != 0 || reads_.count() != 0 || link_.send().write_bytes_ahead() != 0; }
  /// Checks how fast the peer moves bulk data. Returns "", or an error text when the session must end.
  std::string look();

  /// Returns the deadline of the call, from the client's timeout and the server's limits.
  std::uint64_t deadline_ns(const ServerCall& call) const;
  /// Returns the earliest time at which the call can be overdue.
  std::uint64_t end_ns(const ServerCall& call) const;
  /// Returns true when a call may be overdue. The caller then calls forget_ends(), checks all waiting calls,
  /// and calls note_end() for the calls that continue to wait.
  bool may_be_overdue() const { return shared_.now_ns >= next_end_ns_; }
  void forget_ends() { next_end_ns_ = UINT64_MAX; }
  void note_end(const ServerCall& call) { next_end_ns_ = std::min(next_end_ns_, end_ns(call)); }

 private:
  Link& link_;
  Shared& shared_;
  ReadsUnderWay reads_;
  AnswersUnderWay answers_;
  UnreadStreams unread_;
  std::uint32_t waiting_ = 0;               ///< number of waiting calls, see ServerCall::waits_for_peer()
  std::uint64_t next_end_ns_ = UINT64_MAX;  ///< no call can be overdue before this time
  std::uint64_t fetching_bytes_ = 0;        ///< bytes of memory of requests that are being read
};

}  // namespace rdma_rpc::session
