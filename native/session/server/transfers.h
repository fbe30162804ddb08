// Moves the bytes of bulk messages: READs of requests and WRITEs of responses. Calls and sessions take turns,
// and the bytes in flight are limited so that other calls have room (flow.h). ServerEndpoint owns this
// object, uses it on the context's thread, and decides what happens to a call after its bytes have moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "session/call_table.h"
#include "session/fair_queue.h"
#include "session/flow.h"
#include "session/link/link.h"
#include "session/server/peer_watch.h"
#include "session/server/server_call.h"

namespace rdma_rpc::session {

class Transfers {
 public:
  class Owner {
   public:
    /// Stops the READs of the request. The call is refused when its READs in flight have completed.
    virtual void stop_fetching(std::uint32_t slot, std::uint32_t status, std::string why) = 0;
    /// Stops the WRITEs of the response. The error response is sent behind the WRITEs that have been posted.
    virtual void stop_writing(std::uint32_t slot, std::uint32_t status, const std::string& text) = 0;
    /// Sends the response frame behind the WRITEs of the response, all of which are prepared.
    virtual void send_written_response(std::uint32_t slot) = 0;

   protected:
    ~Owner() = default;
  };

  Transfers(Link& link, CallTable<ServerCall>& calls, PeerWatch& watch, Owner& owner)
      : link_(link), shared_(link.shared()), calls_(calls), watch_(watch), owner_(owner) {}

  /// Adds a call that has bytes to move.
  void join(Bulk kind, std::uint32_t slot);
  /// See Endpoint::move().
  Moved move(Bulk kind, std::int64_t& credit);
  /// Records that a READ of this number of bytes has completed.
  void on_read(std::uint32_t bytes);
  /// Removes the session from the queues when it ends.
  void leave() {
    reading_.leave();
    writing_.leave();
  }
  /// See Endpoint::out_of_line().
  bool out_of_line() const {
    return (!reading_calls_.empty() && !reading_.waits()) || (!writing_calls_.empty() && !writing_.waits());
  }

 private:
  /// The credit of one call, and the credit of its session. The number of bytes that the call moves is
  /// subtracted from both credits.
  struct Turn {
    std::int64_t& call;
    std::int64_t& session;
    Moved session_ended = Moved::all;
    /// Ends the turn of the session. The call stays first, because no other call of the session could move
    /// bytes either.
    Moved halt(Moved why) {
      session_ended = why;
      return Moved::halt;
    }
  };
  Moved may_post(Turn& turn) const;
  Moved move_read(std::uint32_t slot, Turn& turn);
  Moved move_write(std::uint32_t slot, Turn& turn);
  void charge(Turn& turn, std::uint32_t bytes);
  void copy_inlined(ServerBulk& bulk, std::byte* message);
  static void next_gather_entry(ServerBulk& bulk);

  Link& link_;
  Shared& shared_;
  CallTable<ServerCall>& calls_;
  PeerWatch& watch_;
  Owner& owner_;
  FairQueue reading_calls_, writing_calls_;  ///< by slot
  FairQueue::Member reading_, writing_;      ///< this session's entries in the queues of the context
  /// A READ in flight into staging memory. READs complete in order, and their bytes are copied from there.
  struct Landing {
    memory::BlockId block;
    std::byte* to;
    std::uint32_t bytes;
  };
  std::deque<Landing> landings_;
};

}  // namespace rdma_rpc::session
