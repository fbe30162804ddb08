// Defines the state of a call slot in the server endpoint of a session. The slot number is a part of the call
// word on the wire, so an index from the peer is checked once and then trusted. ServerEndpoint reads and
// writes it on the context's thread.
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
  waiting,   ///< bulk request: it waits for arena memory
  fetching,  ///< bulk request: its READs are in progress
  running,   ///< JS has the request
  asking,    ///< large response: it waits for the client's reply buffer
  writing,   ///< large response: its WRITEs are in progress; the slot is idle again when the response frame
             ///< is sent
};

struct ServerBulk {
  FairQueue::Member turn;  ///< entry in the queue of the session's calls that have bytes to move
  // Gather entries of the request, in the client's memory.
  std::vector<wire::GatherEntry> remote;
  memory::BlockId block = memory::kNoBlock;  ///< destination of the READs; JS takes its reference
  std::uint32_t total = 0;                   ///< bytes that the message takes at the receiver, gaps included
  bool aligned = false;                      ///< each gather entry begins at its own aligned offset
  std::optional<ReceiveSlot> held_receive;   ///< receive slot with the request's metadata
  std::vector<std::byte> metadata;           ///< copy of the metadata while the request waits for memory
  std::uint32_t inlined_bytes = 0;           ///< size of the inline gather entries behind the metadata
  std::uint32_t inlined_taken = 0;           ///< how many of these bytes have been copied to the block
  std::uint64_t number = 0;                  ///< number of the message, in a sealed session
  bool held_back = false;                    ///< part of a stream: it waits until the application wants it
  boundary::Event request;
  std::uint32_t reads_outstanding = 0;
  std::string refusal;  ///< why the request is refused when its READs have completed
  // The response.
  std::vector<GatherEntry> gather_entries;
  std::uint32_t token = 0;
  std::int32_t slot = -1;  ///< send slot with the response's metadata; -1 when the frame has been sent
  std::uint32_t status = 0, metadata_bytes = 0;
  std::uint64_t asked_ns = 0;  ///< when memory of the client was requested, on the awake clock
  std::uint32_t stream = 0;    ///< number of the stream, when the call is a part of one
  // Progress of the READs or WRITEs.
  std::uint32_t gather_entry = 0, gather_entry_offset = 0;
  std::uint32_t moved = 0;  ///< offset of the next byte in the message at the receiver
};

struct ServerCall {
  std::uint32_t generation = 0;
  ServerState state = ServerState::idle;
  bool exposed = false;      ///< the client always needs a response, to know that its memory is safe
  bool cancelled = false;    ///< cancelled while waiting or fetching
  bool deferred = false;     ///< JS has the request, but the handler has not begun
  bool invalidates = false;  ///< the response invalidates a key of the client
  std::uint8_t cancel_status = 0;
  bool has_reply_buffer = false;
  bool part = false;   ///< a stream, or a part of one
  bool opens = false;  ///< opens a stream
  std::uint32_t method = 0;
  wire::ReplyBuffer reply_buffer{};
  std::uint32_t invalidate_rkey = 0;  ///< key that the response's SEND_WITH_INV invalidates
  std::uint32_t timeout_us = 0;
  std::uint64_t arrived_ns = 0;
  std::unique_ptr<ServerBulk> bulk;

  /// Returns whether the slot counts as a call and is timed.
  bool is_call() const { return !part || opens; }
  /// Returns true while the call holds memory until the peer acts. check_held() limits that time.
  bool waits_for_peer() const {
    return state == ServerState::fetching || state == ServerState::writing || state == ServerState::asking;
  }
  /// Returns true while the response to a part waits until the reader of the stream reaches it.
  bool waits_for_reader() const { return state == ServerState::asking && part; }
};

}  // namespace rdma_rpc::session
