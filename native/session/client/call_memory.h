// The memory that a call shows to the peer: request gather entries to read, reply buffers to write, by
// windows, by copies in the staging memory, or (when the peer is trusted) as it is (exposure.h). What a call
// has shown is noted in the call itself (client_call.h). Owned by ClientEndpoint, on the context's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "session/client/client_call.h"
#include "session/link/link.h"

namespace rdma_rpc::session {

class CallMemory {
 public:
  explicit CallMemory(Link& link) : link_(link), shared_(link.shared()) {}

  /// Shows this memory. Returns the key that the peer gets, or nothing when the device has no window left.
  /// Needs SendQueue::can_bind().
  std::optional<std::uint32_t> expose(ClientBulk& bulk, const fabric::MemoryRegion& region,
                                      std::uint64_t addr, std::uint32_t length, std::uint32_t access);
  /// Which gather entries the frame itself can bring, a bit for each: what is short is not worth a window, a
  /// READ and an invalidation. Not the application's own, which may want them apart, and never all of them,
  /// since a message that is elsewhere has a key.
  std::uint32_t inline_entries(const ClientBulk& bulk) const;
  /// In staging mode: copies the gather entries of the request to where the peer may read them. Returns false
  /// when there is no room now.
  bool stage_request(ClientBulk& bulk);
  /// The call's staging memory can be used again: the peer has no business with it any more.
  void release_staged(ClientBulk& bulk);
  /// Takes the caller's block as the reply buffer, or one for what this method last answered with. Without
  /// either the server asks when it must.
  void choose_reply_buffer(ClientCall& call, memory::BlockId given);
  /// Lets the peer write to the call's reply buffer, or to staging memory for it. Returns nothing when there
  /// is no window or no room.
  std::optional<wire::ReplyBuffer> expose_reply_buffer(ClientBulk& bulk);

 private:
  /// Null outside of staging mode.
  Staging* staging() const { return link_.staging(); }

  Link& link_;
  Shared& shared_;
};

}  // namespace rdma_rpc::session
