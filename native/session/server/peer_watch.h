// What a peer keeps waiting: requests that it does not let this side READ, answers that it grants no memory
// for or does not take. Each holds memory of the arena meanwhile, so each has an end: its deadline, or the
// end of a session whose peer moves too little. Here is which calls wait, when the first of them is overdue,
// and how fast bulk data moves; ServerEndpoint ends them (late.cc), and owns this, on the context's thread.
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

class PeerWatch {
 public:
  explicit PeerWatch(Link& link) : link_(link), shared_(link.shared()), reads_(link.shared().flow) {}

  ReadsUnderWay& reads() { return reads_; }
  AnswersUnderWay& answers() { return answers_; }
  UnreadStreams& unread() { return unread_; }
  const UnreadStreams& unread() const { return unread_; }

  /// The call has come to a state in which it waits for the peer; or is about to leave it.
  void begins(const ServerCall& call);
  void ends(const ServerCall& call);
  /// The peer must move bulk data on: somebody must look at the clock.
  bool waits() const { return waiting_ != 0 || reads_.count() != 0 || link_.send().write_bytes_ahead() != 0; }
  /// Looks at the clock. Returns why the session must end, as its peer moves too little; or "".
  std::string look();

  /// When the call is over, by what its client said and the server allows.
  std::uint64_t deadline_ns(const ServerCall& call) const;
  /// When it is overdue, or might be.
  std::uint64_t end_ns(const ServerCall& call) const;
  /// A call may be overdue: all that wait are to be looked at, and noted again.
  bool may_be_overdue() const { return shared_.now_ns >= next_end_ns_; }
  void forget_ends() { next_end_ns_ = UINT64_MAX; }
  void note_end(const ServerCall& call) { next_end_ns_ = std::min(next_end_ns_, end_ns(call)); }

 private:
  Link& link_;
  Shared& shared_;
  ReadsUnderWay reads_;
  AnswersUnderWay answers_;
  UnreadStreams unread_;
  std::uint32_t waiting_ = 0;               ///< calls, see ServerCall::waits_for_peer()
  std::uint64_t next_end_ns_ = UINT64_MAX;  ///< none of them is overdue before
  std::uint64_t fetching_bytes_ = 0;        ///< of requests that are READ: their memory
};

}  // namespace rdma_rpc::session
