// Allocates the reply buffers that the server requests. Reply buffers consist of arena memory. The memory is
// allocated at once, or the call waits for it in a queue. The memory that large messages of streams get
// before their reader needs them is limited to a small share of the arena. Beyond this share, such messages
// are announced to JS. JS fetches them when the reader reaches them, so that slow readers do not keep memory
// from others. ClientEndpoint owns this object and uses it on the context's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "session/call_table.h"
#include "session/client/call_memory.h"
#include "session/client/client_call.h"
#include "session/link/link.h"

namespace rdma_rpc::session {

class ReplyBuffers {
 public:
  ReplyBuffers(Link& link, CallTable<ClientCall>& calls, CallMemory& memory)
      : link_(link), shared_(link.shared()), calls_(calls), memory_(memory) {}

  /// Handles a REPLY_BUFFER_REQUEST.
  void on_request(const wire::Header& header);
  /// Grants the reply buffer that was held back until the application waits for the response to this part.
  void want(std::uint32_t call);
  /// Tries again to grant a reply buffer to this call, because arena memory may be free. Returns false when
  /// there is still no memory, or no room to bind.
  bool retry(std::uint32_t call);
  /// Tells the server that there is no memory for the response to this call.
  void refuse(std::uint32_t call);
  /// See Endpoint::lacks_arena(). A call that waits may also lack room to bind.
  bool lacks_arena(std::uint32_t call);
  std::uint32_t awaited_bytes(std::uint32_t slot);

  /// Returns true while reply buffers wait for staging memory.
  bool waits() const { return !deferred_.empty(); }
  /// Grants the waiting reply buffers in order, while staging memory is available.
  void start_deferred();
  /// Drops all waiting reply buffers when the session ends.
  void clear() { deferred_.clear(); }

 private:
  bool answer(std::uint32_t slot);
  void grant_or_wait(std::uint32_t slot);
  void wait_for_memory(std::uint32_t call);

  Link& link_;
  Shared& shared_;
  CallTable<ClientCall>& calls_;
  CallMemory& memory_;
  std::vector<std::uint32_t> deferred_;  ///< call words of the waiting reply buffers
};

}  // namespace rdma_rpc::session
