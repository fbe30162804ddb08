// Describes a large message that JS submits to a session with submitBulk() of runtime/native/native.ts. The
// binding creates it and both endpoints use it, on the context's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/fabric.h"
#include "memory/arena.h"
#include "session/boundary.h"

namespace rdma_rpc::session {

/// A gather entry from JS: bytes, and the ArrayBuffer that contains them (key 0 for arena memory).
struct GivenGatherEntry {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t key = 0;
  bool lent = true;  ///< the application can access this memory, too
  std::byte* buffer_data = nullptr;
  std::size_t buffer_bytes = 0;
  std::shared_ptr<const fabric::Presence> presence{};  ///< watches the buffer; null for arena memory
  bool text = false;    ///< lies in the encode scratch buffer (boundary.h), which the next message reuses
  bool copied = false;  ///< has no key, so the message is copied to the arena
};

struct BulkSubmission {
  boundary::SubOp op = boundary::SubOp::request;
  std::uint32_t call = 0, method = 0, slot = 0, metadata_bytes = 0, timeout_us = 0;
  std::vector<GivenGatherEntry> gather_entries;
  memory::BlockId reply_buffer = memory::kNoBlock;
  memory::Use use = memory::Use::request;  ///< use of the arena block to which the message is copied
  /// True when the gather entries make up the aligned layout: each begins at its own offset, see
  /// wire::aligned_offset().
  bool aligned = false;
  /// For a request: a response that does not fit `reply_buffer` is refused, because no other memory is
  /// granted.
  bool reply_buffer_only = false;
};

}  // namespace rdma_rpc::session
