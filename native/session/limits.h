// Defines the limits and defaults of the native layers above the fabric, each with its reason.
// runtime/limits.ts has those of TypeScript. Values that both languages need are passed in NativeOptions and
// SessionOptions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdma_rpc::session {

/// Number of call slots of a session, including the slots of streams. The call word on the wire has 12 bits
/// for the slot.
inline constexpr std::uint32_t kCallSlotsMax = 4096;

/// Limit of the sessions of a context. The low 14 bits of a session's number are its table index.
inline constexpr std::uint32_t kSessionsMax = 16384;
/// A session gets another send slot only while the number of its slots is at most this multiple of the free
/// slots. Therefore a session whose peer receives nothing leaves a quarter of the slots to the others.
inline constexpr std::uint32_t kSlotShare = 3;
/// One in this number of slots is reserved for sessions that hold less than an equal share of the reserved
/// slots. An equal share is at least one slot.
inline constexpr std::uint32_t kReservedSlots = 16;

/// Number of sessions whose receives share one memory region, on devices with a limited number of regions.
inline constexpr std::uint32_t kSlabsPerMemory = 64;

/// Receives that are posted in addition to one for each call in flight. These receives are for CANCEL,
/// REPLY_BUFFER and CREDIT frames.
inline constexpr std::uint32_t kControlReceives = 16;
/// Credits that requests and responses do not use, so that a call can still be cancelled when all other
/// credits are used.
inline constexpr std::uint32_t kControlCredits = 8;
/// The part of kControlCredits that only a CREDIT frame may use, so that two sides that owe each other
/// credits cannot block each other.
inline constexpr std::uint32_t kCreditFrameCredits = 2;

/// Initial and guaranteed size of a credit pool, for sessions whose receives may be shared. Eight of these
/// credits are reserved for control frames (docs/wire/calls.md §4). These numbers are part of the wire
/// protocol.
inline constexpr std::uint32_t kCertainReceives = 32;
/// The part of the guaranteed credits that is reserved for CANCELs of calls that expose memory of the
/// application. Half of the guaranteed credits are certain to return. The part of that half that is not
/// reserved is enough for the longest message in segments, with slots of 8 KiB.
inline constexpr std::uint32_t kCertainCancels = 5;
/// While a context has at most this number of sessions, each session has receives of its own, because a
/// shared receive queue and its completion queue also take some megabytes.
inline constexpr std::uint32_t kSharedFrom = 2;
/// Credits beyond the guaranteed ones, for all sessions of a context together.
inline constexpr std::uint32_t kSharedBeyond = 1024;
/// A session gets at most this multiple of the additional credits that remain for others after that.
inline constexpr std::uint32_t kCreditShare = 3;
/// A session whose peer uses all of its credits in this time gets more. A session whose peer uses less than
/// half of them gets fewer. The time is longer than round trips, because a peer can use its credits once in
/// each round trip.
inline constexpr std::uint64_t kCreditEpochNs = 100'000'000;
/// Limits of the shared receives of a context, in number and in bytes, and the number of receives that are
/// registered at a time.
inline constexpr std::uint32_t kSharedReceivesMax = 32768;
inline constexpr std::uint64_t kSharedBytesMax = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kSharedChunk = 64;

/// Gather entries of one bulk message. A longer gather list is copied into one gather entry
/// (docs/wire/calls.md).
inline constexpr std::uint32_t kGatherEntriesMax = 30;

/// Gather entries of up to this length are sent inline, in the frame of the request, instead of being exposed
/// to the peer. The encoding around one large value has some 130 bytes. Even twice as much is copied within a
/// few cache lines. (This value has not been tuned.)
inline constexpr std::uint32_t kInlinedBytes = 256;

/// Spare bytes before the payload of every slot. These bytes are enough for the header and extensions of each
/// frame without gather entries.
inline constexpr std::uint32_t kSlotHeadroom = 64;

/// Spare bytes behind the payload of a send slot. In the frame of a large message, the gather list comes
/// before the metadata. Metadata that fills the slot is moved into these bytes, which makes room for the head
/// of the list and one gather entry.
inline constexpr std::uint32_t kSlotTail = 64;

/// Limit of messages, including metadata, that are sent in several SENDs, even when the device prefers a
/// higher one. The limit is also the size of the receiver's memory for such a message.
inline constexpr std::uint32_t kSegmentedBytesMax = 32 * 1024;
/// Limit of the SENDs that precede the last SEND of such a message. Together with the last one, they fit into
/// one post (kPostBatch).
inline constexpr std::uint32_t kSegmentsMax = 31;
/// Bytes that a send slot leaves free between two segments. These bytes contain the seal of the segment
/// before them and the header of the segment after them.
inline constexpr std::uint32_t kSegmentGap = 32;
/// Number of send slots for such messages, shared by all sessions of a context. The number is half a window.
/// When all of these slots are in use, the next such message is sent as bulk data.
inline constexpr std::uint32_t kLongSlots = 128;
/// Number of buffers in which such messages are reassembled until JS has read them. The number is enough for
/// four batches. While no buffer is free, the completion queue is not polled.
inline constexpr std::uint32_t kReassembledMessages = 128;
/// Number of buffers for short messages that JS has not read yet. The number is enough for two batches,
/// because one batch may arrive while JS reads another.
inline constexpr std::uint32_t kShortMessages = 2 * 32;

/// Size of one READ work request of a bulk transfer. This size is large enough to reach full bandwidth, and
/// small enough that other calls are served in between. The record of a work request has 20 bits for this
/// size.
inline constexpr std::uint32_t kChunkBytes = 512 * 1024;
/// Number of bytes that a session, or a call within a session, moves before the next one has its turn. The
/// number is at least a chunk, so that each turn moves something. A call of one or two MiB is moved in one
/// turn. If it alternated with others, its data would leave the cache before it is answered
/// (docs/internals/decisions/fairness.md).
inline constexpr std::int64_t kQuantumBytes = 4 * kChunkBytes;
/// Limit of a session's posted WRITEs that have not completed, because a frame that is posted now waits for
/// them. The limit has room for at least two WRITEs, so that the wire does not wait for the next post. A link
/// of 100 Gb/s transfers this number of bytes in 20 us by calculation.
inline constexpr std::uint32_t kWriteAheadBytes = 256 * 1024;
inline constexpr std::uint32_t kWriteChunkBytes = kWriteAheadBytes / 2;
/// A completion is requested after this number of bytes of WRITEs.
inline constexpr std::uint32_t kWriteSignalBytes = kWriteAheadBytes / 4;
/// Limit of READs in flight of all sessions of a context. A session may use at most half of this limit.
inline constexpr std::uint64_t kReadBytesMax = std::uint64_t{16} << 20;
/// A session without READs in flight gets a READ of this size even when the limit is reached. A small frame
/// waits for at most one such READ of each session.
inline constexpr std::uint32_t kReadLeastBytes = 64 * 1024;
/// When a peer answers READs with less than kChunkBytes in this time, the READs to that peer no longer count
/// towards kReadBytesMax, and its session may have only one READ at a time.
inline constexpr std::uint64_t kReadSlowNs = 2'000'000'000;
/// Within this time, a peer must complete all of its bulk data in flight, or at least kBulkLeastBytes of that
/// data. The session of a slower peer ends. The time is measured on the awake clock (kAwakeStepNs).
inline constexpr std::uint64_t kBulkStillNs = 30'000'000'000;
inline constexpr std::uint64_t kBulkLeastBytes = 1024 * 1024;
/// A client must accept the waiting responses within this number of periods, whatever their size. In each
/// period it must therefore accept the total divided by this number, or kBulkLeastBytes if that is more.
inline constexpr std::uint64_t kBulkPeriods = 16;
/// While other calls wait for memory, a peer has less time. It must then complete kReclaimBytes within this
/// time.
inline constexpr std::uint64_t kReclaimNs = 3'000'000'000;
/// A peer is slow when it completes less than this number of bytes in kReclaimNs. There are two exceptions:
/// the peer has no more bytes left to complete, or it completes one part in kBulkPeriods of the memory that
/// it keeps in use. A slow peer loses that memory, because its calls are ended. If only the end of its
/// session frees the memory, the session is ended too. Requests and responses are counted separately, on the
/// awake clock.
inline constexpr std::uint64_t kReclaimBytes = 128 * 1024;
/// Time for which calls must have waited for memory before a slow peer loses memory.
inline constexpr std::uint64_t kReclaimWaitNs = 1'000'000'000;
/// Time for which a stream may keep unread large messages while other calls wait for memory. The time starts
/// again with each message that is read.
inline constexpr std::uint64_t kUnreadStreamNs = 30'000'000'000;
/// Time in which a client must provide a reply buffer when the call has no deadline. A client whose thread is
/// blocked or stopped for a shorter time is treated as slow.
inline constexpr std::uint64_t kReplyBufferWaitNs = 120'000'000'000;

/// Limit of the bytes of READs and WRITEs that all sessions together post in one turn of the loop.
inline constexpr std::uint32_t kPostedBytesPerTurn = 4 * 1024 * 1024;
/// The same limit for fabrics on which the posting thread copies the data. Copying this number of bytes takes
/// about 400 us by calculation.
inline constexpr std::uint32_t kCopiedBytesPerTurn = 4 * 1024 * 1024;
/// The same limit while sessions also have small calls. Copying this number of bytes takes 7 us by
/// calculation.
inline constexpr std::uint32_t kSliceBytes = 64 * 1024;
/// kSliceBytes applies for this time after a small call.
inline constexpr std::uint64_t kSmallTrafficNs = 1'000'000;

/// Step by which the staging memory of a session grows.
inline constexpr std::size_t kStagingChunkBytes = 256 * 1024;
/// Smallest default size of the staging memory. Memory of this size has room for many calls, however large
/// the largest message may be.
inline constexpr std::size_t kStagingBytesLeast = std::size_t{16} << 20;
/// A request offers a reply buffer only if the buffer is at most the staging memory divided by this number,
/// because the response may be small. Without an offered buffer, the server requests one of the size that it
/// needs.
inline constexpr std::size_t kStagingShare = 4;

/// Bounds of the depth of a send queue. The depth is twice the number of calls in flight, so that many small
/// sessions are cheap. Both bounds are powers of two.
inline constexpr std::uint32_t kSendQueueDepthMin = 64;
inline constexpr std::uint32_t kSendQueueDepthMax = 512;
/// When one part in this number of the send queue has been used since the last requested completion, the next
/// work request requests a completion. The rest of the queue must have room for a full post.
inline constexpr std::uint32_t kSignalShare = 8;
/// Limit of work requests that are prepared before one post (one doorbell).
inline constexpr std::uint32_t kPostBatch = 32;
/// Limits of the gather entries of a work request, and of the bytes that a NIC sends inline. With these two
/// values, an entry of a send queue takes 256 bytes on mlx5, so a queue of 512 entries takes 128 KiB. With 16
/// gather entries and 512 inline bytes, the same queue would take 512 KiB.
inline constexpr std::uint32_t kSgeMax = 12;
inline constexpr std::uint32_t kInlineMax = 220;

/// Limit of events that are passed to JS at once. Larger batches make the two processes alternate instead of
/// overlapping.
inline constexpr std::uint32_t kEventsMax = 32;
/// Limit of the polls that look for CANCEL frames before the bulk data of new responses is moved.
inline constexpr std::uint32_t kDrainPollsMax = 8;
/// Limit of submissions that JS may stage before it must flush.
inline constexpr std::uint32_t kSubmissionsMax = 64;

/// Time for which the caller of a cancelled call with exposed memory waits for two events: the invalidation
/// of the windows, and the peer's response, which tells whether the handler ran. After this time the caller
/// is notified without them. (Soft-RoCE invalidates a window only when the peer has acknowledged everything
/// that was sent before, and it resends a lost packet after 67 ms.)
inline constexpr std::uint64_t kSettleGraceNs = 10'000'000;
/// Time for which a caller whose request memory is exposed waits for the CANCEL to arrive while the device
/// completes nothing at all. After that time the connection counts as stuck and the session ends, because
/// only the end of the session makes the memory safe. The time is longer than links and drivers take to
/// recover (two seconds for soft-RoCE), and shorter than their retries.
inline constexpr std::uint64_t kStuckWireNs = 3'000'000'000;
/// After kSettleGraceNs, the call slot, keys and memory of a cancelled call may be pending release for this
/// time. A peer whose thread is blocked or stopped for a shorter time is treated as slow; a peer that never
/// answers loses its session.
inline constexpr std::uint64_t kHoldLimitNs = 120'000'000'000;
/// Interval at which kHoldLimitNs is checked.
inline constexpr std::uint64_t kHoldCheckNs = 100'000'000;

/// Time for which frames may wait for credits while the peer returns none. A peer whose thread is blocked or
/// stopped for a shorter time is treated as slow.
inline constexpr std::uint64_t kNoCreditNs = 120'000'000'000;
/// The same limit while no send slot is free. It is shorter because the waiting frames hold send slots that
/// all sessions of the context share.
inline constexpr std::uint64_t kNoCreditShortNs = 30'000'000'000;
/// Largest step of the awake clock, which runs only while this thread runs. The clock advances by at most
/// this time between two turns of the loop. A process that was stopped for a minute therefore first reads the
/// answers that have arrived.
inline constexpr std::uint64_t kAwakeStepNs = 100'000'000;

/// Minimum number of chunks of an arena.
inline constexpr std::size_t kArenaChunksMin = 64;
/// Limit of bulk transfers that wait for arena memory, per context. Further transfers are refused.
inline constexpr std::size_t kMemoryWaitersMax = 4096;
/// Time for which a transfer may wait at the head of the queue. The time is longer than the time for which
/// handlers keep large messages. The time is shorter than most time limits of calls, so that the caller's
/// error names the memory as the cause.
inline constexpr std::uint64_t kMemoryWaitNs = 10'000'000'000;
/// Waiting time after which the application is warned, once.
inline constexpr std::uint64_t kMemoryShortNs = 1'000'000'000;
/// At most this much of the time between two checks of the queue counts, because a thread that was busy or
/// stopped could not release memory.
inline constexpr std::uint64_t kMemoryCheckNs = 100'000'000;
/// Overflow slots behind the receives, for the metadata of requests that have waited for memory. The number
/// of overflow slots also limits the requests of this kind that a session fetches at once.
inline constexpr std::uint32_t kOverflowSlots = 4;

/// Longest text of an error response, in bytes.
inline constexpr std::size_t kErrorTextMax = 1024;

}  // namespace rdma_rpc::session
