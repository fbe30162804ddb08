// The staging memory of one session: on a device without memory windows the only memory that the peer of the
// session can touch. Its rights last as long as the session, so the memory of calls is never among it: what a
// client exposes is copied in, what comes is copied out. On iWARP the server's READs land in it too, since
// they need memory that the peer may write. Owned by Link, on the context's thread.
//
// Grows as it is needed, and a range is used again only when the peer can have no more business with it: a
// call that its caller has given up is held, and its ranges with it, until the peer has answered.
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

  /// A range, or kNoBlock: wait until one is given back, unless empty().
  memory::BlockId take(std::size_t bytes) { return arena_.alloc(bytes); }
  void release(memory::BlockId block) { arena_.release(block); }
  const memory::Block& at(memory::BlockId block) const { return arena_.at(block); }
  /// Nothing is out: a range that cannot be had now will not be had later.
  bool empty() const { return arena_.counters().blocks_leased == 0; }
  /// Why the system refused the last one; empty when it did not.
  const std::string& refusal() const { return arena_.refusal(); }
  std::size_t largest() const { return arena_.largest(); }

 private:
  memory::Arena arena_;
};

}  // namespace rdma_rpc::session
