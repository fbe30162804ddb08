// Exposes the memory of a call to the peer: gather entries of the request, which the peer reads, and reply
// buffers, to which the peer writes. The memory is exposed by memory windows, by copies in the staging
// memory, or, to a trusted peer, directly (exposure.h). The call itself records the memory that it has
// exposed (client_call.h). ClientEndpoint owns this object and uses it on the context's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "session/client/client_call.h"
#include "session/link/link.h"

namespace rdma_rpc::session {

class CallMemory {
 public:
  explicit CallMemory(Link& link) : link_(link), shared_(link.shared()) {}

  /// Exposes this memory. Returns the key for the peer, or std::nullopt when the device has no window left.
  /// Requires SendQueue::can_bind().
  std::optional<std::uint32_t> expose(ClientBulk& bulk, const fabric::MemoryRegion& region,
                                      std::uint64_t addr, std::uint32_t length, std::uint32_t access);
  /// Returns a mask with a bit for each gather entry that is sent inline, in the frame, because a short entry
  /// is not worth a window, a READ and an invalidation. Buffers of the application are not sent inline, and
  /// at least one entry must have a key.
  std::uint32_t inline_entries(const ClientBulk& bulk) const;
  /// In staging mode, copies the gather entries of the request to the staging memory. Returns false when the
  /// staging memory has no room now.
  bool stage_request(ClientBulk& bulk);
  /// Releases the call's staging memory, which the peer no longer uses.
  void release_staged(ClientBulk& bulk);
  /// Uses the caller's block as the reply buffer, or allocates one of the size of this method's last
  /// responses. When the call gets no reply buffer here, the server asks for one if the response needs it.
  void choose_reply_buffer(ClientCall& call, memory::BlockId given);
  /// Returns how many bytes of the arena the call's request keeps in use until the response arrives.
  std::size_t request_bytes(const ClientBulk& bulk) const;
  /// Exposes the call's reply buffer, or staging memory in its place. Returns std::nullopt when the device
  /// has no window left or the staging memory has no room.
  std::optional<wire::ReplyBuffer> expose_reply_buffer(ClientBulk& bulk);

 private:
  /// Returns null outside of staging mode.
  Staging* staging() const { return link_.staging(); }

  Link& link_;
  Shared& shared_;
};

}  // namespace rdma_rpc::session
