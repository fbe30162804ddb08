// Queues requests that expose memory to the peer. Each request is sent, in order, when there is room to bind
// its windows and to copy its staged data. ClientEndpoint owns this object and uses it on the context's
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "session/call_table.h"
#include "session/client/call_memory.h"
#include "session/client/client_call.h"
#include "session/client/reply_buffers.h"
#include "session/client/revocation.h"
#include "session/link/link.h"

namespace rdma_rpc::session {

class BulkRequests {
 public:
  BulkRequests(Link& link, CallTable<ClientCall>& calls, CallMemory& memory, ReplyBuffers& reply_buffers,
               Revocation& revocation)
      : link_(link),
        shared_(link.shared()),
        calls_(calls),
        memory_(memory),
        reply_buffers_(reply_buffers),
        revocation_(revocation) {}

  /// Sends the request of this call now, or queues it behind other requests that wait for room.
  void send(std::uint32_t slot);
  /// Returns true while requests wait for room. The requests may wait for resources that all sessions share.
  bool waits() const { return !deferred_.empty(); }
  /// Sends waiting requests while there is room.
  void start_deferred();
  /// Removes the waiting request of a cancelled call.
  void remove(std::uint32_t slot);
  /// Drops all waiting requests when the session ends.
  void end_unsent();

 private:
  /// Exposes the call's memory and sends its frame. Returns false when there is no room for the exposure or
  /// the frame yet.
  bool start(std::uint32_t slot);

  Link& link_;
  Shared& shared_;
  CallTable<ClientCall>& calls_;
  CallMemory& memory_;
  ReplyBuffers& reply_buffers_;
  Revocation& revocation_;
  std::vector<std::uint32_t> deferred_;  ///< slots of the calls that wait
};

}  // namespace rdma_rpc::session
