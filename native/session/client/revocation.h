// Ends calls that have exposed memory: first it invalidates their windows, then it emits their last event.
// This class also ends such calls early, when they are cancelled. Invalidating a window during a READ or
// WRITE would break the session, and with it every other call. Therefore a cancelled call is pending release
// until the peer has answered. The caller is notified at once, and the call slot and memory are released
// later, with RELEASED. The last event of a call may be emitted only under two conditions: the peer can no
// longer write to memory of the application, and no handler can get bytes that the application writes there
// from then on (docs/internals/decisions/calls.md). ClientEndpoint owns this object and uses it on the
// context's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "session/call_table.h"
#include "session/client/call_memory.h"
#include "session/client/client_call.h"
#include "session/endpoint.h"
#include "session/link/link.h"

namespace rdma_rpc::session {

class Revocation {
 public:
  Revocation(Link& link, CallTable<ClientCall>& calls, CallMemory& memory, CallCount& count)
      : link_(link), shared_(link.shared()), calls_(calls), memory_(memory), count_(count) {}

  /// Ends a call whose result is known. JS gets the result when all windows of the call are invalid.
  void end(std::uint32_t slot, const boundary::Event& result);
  /// Ends the call after all of its windows have become invalid, or after the queue pair has been destroyed.
  /// In the second case, `windows_intact` is false.
  void settle(std::uint32_t slot, bool windows_intact);
  /// Releases all memory and windows of the call, without an event.
  void end_bulk(ClientCall& call, bool windows_intact);

  /// Limits the time for which the caller still waits to kSettleGraceNs from now on.
  void start_timeout(ClientCall& call, boundary::Reason reason);
  /// Records that the SEND of a CANCEL has completed. The peer will find the CANCEL before the completions of
  /// later READs.
  void on_cancel_arrived(std::uint32_t call);
  /// Handles the completion of an invalidation.
  void on_invalidated(std::uint32_t slot);

  /// Returns true while invalidations wait for room in the send queue.
  bool waits() const { return !backlog_.empty(); }
  void move_waiting();
  /// Returns true while calls wait for their CANCEL or for their windows, so that check_timeouts() must be
  /// called.
  bool has_timeouts() const { return timeouts_pending_ != 0; }
  void check_timeouts();
  /// Returns true while cancelled calls are pending release, so that check_held() must be called.
  bool has_pending_release() const { return pending_release_ != 0; }
  void check_held();

 private:
  void issue_invalidates(std::uint32_t slot);
  bool open_answer(boundary::Event& event, std::uint64_t number);
  bool revoke(ClientBulk& bulk);
  void give_memory_back(ClientBulk& bulk);
  void notify_caller(std::uint32_t slot);
  bool wire_is_stuck();

  Link& link_;
  Shared& shared_;
  CallTable<ClientCall>& calls_;
  CallMemory& memory_;
  CallCount& count_;
  std::uint32_t timeouts_pending_ = 0;  ///< number of calls with a timeout
  std::uint32_t pending_release_ = 0;   ///< number of calls that are pending release
  std::vector<std::uint32_t> backlog_;  ///< slots of calls whose invalidations wait
  /// Time since which a call has waited for its CANCEL to arrive while no request has completed after
  /// `still_at_`. The time is on the awake clock; 0 when no call waits.
  std::uint64_t still_since_ns_ = 0;
  std::uint32_t still_at_ = 0;  ///< value of SendQueue::completed()
};

}  // namespace rdma_rpc::session
