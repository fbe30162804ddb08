// Manages the staging memory of one session. On a device without memory windows, it is the only memory that
// the peer of the session can access. The peer's access lasts as long as the session, so calls have no memory
// of their own here. A client copies the data that it exposes into the staging memory, and copies responses
// out of it. On iWARP the server's READs are also placed in staging memory, because they need memory that the
// peer may write. Link owns this object and uses it on the context's thread.
//
// The memory grows as needed. A range is reused only when the peer can no longer access it. For this reason a
// cancelled call and its ranges are pending release until the peer has answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/arena.h"
#include "session/limits.h"

namespace rdma_rpc::session {

class Staging {
 public:
  Staging(fabric::Device& device, std::size_t bytes, std::uint32_t remote_access)
      : arena_(device, {.budget_bytes = bytes,
                        .chunk_bytes = kStagingChunkBytes,
                        .remote_access = remote_access,
                        .purpose = "staging"}) {}

  /// Allocates a range. Returns kNoBlock when no room is left. The caller then waits until a range is
  /// released, unless empty() is true.
  memory::BlockId take(std::size_t bytes) { return arena_.alloc(bytes); }
  void release(memory::BlockId block) { arena_.release(block); }
  const memory::Block& at(memory::BlockId block) const { return arena_.at(block); }
  /// Returns true when no range is in use. An allocation that fails now will fail later, too.
  bool empty() const { return arena_.counters().blocks_leased == 0; }
  /// Returns the reason why the operating system refused the last allocation; "" when it has not refused it.
  const std::string& refusal() const { return arena_.refusal(); }
  std::size_t largest() const { return arena_.largest(); }

 private:
  memory::Arena arena_;
};

}  // namespace rdma_rpc::session
