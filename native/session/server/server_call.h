// The state of a call slot in the server endpoint of a session. The slot number is a part of the call word on
// the wire, so an index from the peer is checked once and then trusted. Read and written by ServerEndpoint,
// on the context's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/boundary.h"
#include "session/exposure.h"
#include "session/fair_queue.h"
#include "session/link/receive_slot.h"
#include "session/wire.h"

namespace rdma_rpc::session {

enum class ServerState : std::uint8_t {
  idle,
  waiting,   ///< bulk request: waits for arena memory
  fetching,  ///< bulk request: READs in progress
  running,   ///< handed to JS
  asking,    ///< large response: waits for the client's reply buffer
  writing,   ///< large response: WRITEs in progress; idle again as soon as the response is on its way
};

struct ServerBulk {
  FairQueue::Member turn;  ///< in the queue of the session's calls that have bytes to move
  // the request
  std::vector<wire::GatherEntry> remote;
  memory::BlockId block = memory::kNoBlock;  ///< READ reply buffer, one reference held until JS takes it
  std::uint32_t total = 0;                   ///< bytes that the message takes at the receiver, gaps included
  bool aligned = false;                      ///< each gather entry begins at its aligned offset
  std::optional<ReceiveSlot> held_receive;   ///< slot with the request's metadata
  std::vector<std::byte> metadata;           ///< copy of it while the request waits for memory
  std::uint32_t inlined_bytes = 0;           ///< size of the inline gather entries behind the metadata
  std::uint32_t inlined_taken = 0;           ///< bytes of them that have been copied to the block
  std::uint64_t number = 0;                  ///< of the message, in a sealed session
  bool held_back = false;                    ///< part of a stream: waits until the application wants it
  boundary::Event request;
  std::uint32_t reads_outstanding = 0;
  std::string refusal;  ///< why the request is refused when its READs have completed
  // the response
  std::vector<GatherEntry> gather_entries;
  std::uint32_t token = 0;
  std::int32_t slot = -1;  ///< send slot with the response's metadata, -1: already sent
  std::uint32_t status = 0, metadata_bytes = 0;
  std::uint64_t asked_ns = 0;  ///< on the awake clock: when memory of the client was requested
  std::uint32_t stream = 0;    ///< number of the stream, when the call is a part of one
  // progress of the READs or WRITEs
  std::uint32_t gather_entry = 0, gather_entry_offset = 0;
  std::uint32_t moved = 0;  ///< offset of the next byte in the message at the receiver
};

struct ServerCall {
  std::uint32_t generation = 0;
  ServerState state = ServerState::idle;
  bool exposed = false;      ///< the client needs a response in any case, to know that its memory is safe
  bool cancelled = false;    ///< while waiting or fetching
  bool invalidates = false;  ///< the response invalidates a key of the client
  std::uint8_t cancel_status = 0;
  bool has_reply_buffer = false;
  bool part = false;   ///< a stream, or a part of one
  bool opens = false;  ///< opens a stream
  std::uint32_t method = 0;
  wire::ReplyBuffer reply_buffer{};
  std::uint32_t invalidate_rkey = 0;  ///< named in the response's SEND_WITH_INV
  std::uint32_t timeout_us = 0;
  std::uint64_t arrived_ns = 0;
  std::unique_ptr<ServerBulk> bulk;

  /// Returns whether it counts as a call and is timed.
  bool is_call() const { return !part || opens; }
  /// Returns true while it holds memory until the peer does something. check_held() limits that time.
  bool waits_for_peer() const {
    return state == ServerState::fetching || state == ServerState::writing || state == ServerState::asking;
  }
  /// Returns true while the response to a part waits until the reader of the stream reaches it.
  bool waits_for_reader() const { return state == ServerState::asking && part; }
};

}  // namespace rdma_rpc::session
