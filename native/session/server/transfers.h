// The bytes of bulk messages on their way: READs of requests and WRITEs of responses, each call and each
// session in its turn, and no more at once than leaves room for other calls (flow.h). Owned by
// ServerEndpoint, which says what becomes of a call; on the context's thread.
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
    /// No more READs of the request: the call is refused when those under way are over.
    virtual void stop_fetching(std::uint32_t slot, std::uint32_t status, std::string why) = 0;
    /// No more WRITEs of the response: the call is refused behind those that are on their way.
    virtual void stop_writing(std::uint32_t slot, std::uint32_t status, const std::string& text) = 0;
    /// Every WRITE of the response has been prepared: its frame goes behind them.
    virtual void send_written_response(std::uint32_t slot) = 0;

   protected:
    ~Owner() = default;
  };

  Transfers(Link& link, CallTable<ServerCall>& calls, PeerWatch& watch, Owner& owner)
      : link_(link), shared_(link.shared()), calls_(calls), watch_(watch), owner_(owner) {}

  /// Bytes of this call can be moved.
  void join(Bulk kind, std::uint32_t slot);
  /// See Endpoint::move().
  Moved move(Bulk kind, std::int64_t& credit);
  /// A READ of so many bytes has completed.
  void on_read(std::uint32_t bytes);
  /// The session ends: it moves nothing any more.
  void leave() {
    reading_.leave();
    writing_.leave();
  }
  /// See Endpoint::out_of_line().
  bool out_of_line() const {
    return (!reading_calls_.empty() && !reading_.waits()) || (!writing_calls_.empty() && !writing_.waits());
  }

 private:
  /// A turn of one call within that of the session: what it takes is taken from both.
  struct Turn {
    std::int64_t& call;
    std::int64_t& session;
    Moved session_ended = Moved::all;
    /// The call keeps its place, since no other one of the session could go on either.
    Moved halt(Moved why) {
      session_ended = why;
      return Moved::halt;
    }
  };
  Moved may_post(Turn& turn) const;
  Moved move_read(std::uint32_t slot, Turn& turn);
  Moved move_write(std::uint32_t slot, Turn& turn);
  void charge(Turn& turn, std::uint32_t bytes);
  void place_inlined(ServerBulk& bulk, std::byte* message);
  static void next_gather_entry(ServerBulk& bulk);

  Link& link_;
  Shared& shared_;
  CallTable<ServerCall>& calls_;
  PeerWatch& watch_;
  Owner& owner_;
  FairQueue reading_calls_, writing_calls_;  ///< by slot
  FairQueue::Member reading_, writing_;      ///< this session among those of the context
  /// READs under way into staging memory, in order: they complete in order, and are copied from there.
  struct Landing {
    memory::BlockId block;
    std::byte* to;
    std::uint32_t bytes;
  };
  std::deque<Landing> landings_;
};

}  // namespace rdma_rpc::session
