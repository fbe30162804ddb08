// Every limit and default of the native layers above the fabric, each with its reason. runtime/limits.ts is
// the same file for TypeScript; what both sides need travels in NativeOptions and SessionOptions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdma_rpc::session {

/// Call slots of a session, those of streams included: 12 bits of the call word on the wire name the slot.
inline constexpr std::uint32_t kCallSlotsMax = 4096;

/// Sessions of a context at once: the low 14 bits of a session's number are its place.
inline constexpr std::uint32_t kSessionPlaces = 16384;
/// A session gets another send slot as long as it holds no more than so many times what is free: one whose
/// peer takes nothing leaves a quarter to the others.
inline constexpr std::uint32_t kSlotShare = 3;
/// And the last one in so many is for sessions that hold less than their equal part of those, one at least.
inline constexpr std::uint32_t kReservedSlots = 16;

/// Sessions whose receives lie in one memory, on a device that has only so many memories.
inline constexpr std::uint32_t kSlabsPerMemory = 64;

/// Receives posted beyond the calls in flight, for cancels, reply buffers and credits.
inline constexpr std::uint32_t kControlReceives = 16;
/// Credits that requests and responses leave for control frames, so that a full window can still be
/// cancelled.
inline constexpr std::uint32_t kControlCredits = 8;
/// Of these, what only a CREDIT frame may use: with it, two sides that owe each other credits cannot both be
/// stuck.
inline constexpr std::uint32_t kCreditFrameCredits = 2;

/// Where receives are shared, or may be: what each side of a session may send at first, and is sure of. Eight
/// of them are for control frames (docs/wire/calls.md). A part of the wire.
inline constexpr std::uint32_t kCertainReceives = 32;
/// Of these, for CANCELs of calls that lend memory. What is left of the half that surely comes back is enough
/// for the longest message in segments, with slots of 8 KiB.
inline constexpr std::uint32_t kCertainCancels = 5;
/// A context with fewer sessions than so many has receives of their own for each: the shared queue of a
/// device, and the completion queue for it, take some megabytes too.
inline constexpr std::uint32_t kSharedFrom = 2;
/// What all sessions of a context together may have beyond that, and ...
inline constexpr std::uint32_t kSharedBeyond = 1024;
/// ... one of them: no more than so many times what is left then.
inline constexpr std::uint32_t kCreditShare = 3;
/// A session that is sent as many frames as it may be in this time gets more, and one that is sent less than
/// a half of them gets less. Longer than round trips are: who may send few can send them once in each.
inline constexpr std::uint64_t kCreditEpochNs = 100'000'000;
/// Shared receives of a context, in number and in memory; registered so many at a time.
inline constexpr std::uint32_t kSharedReceivesMax = 32768;
inline constexpr std::uint64_t kSharedBytesMax = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kSharedChunk = 64;

/// Gather entries of one bulk message. A longer gather list is copied into one gather entry
/// (docs/wire/calls.md).
inline constexpr std::uint32_t kGatherEntriesMax = 30;

/// A gather entry of so many bytes goes along in the frame of its request rather than being shown to the
/// peer. What is around one large value is some 130 bytes; twice as much is still a copy of a few lines. (Not
/// tuned.)
inline constexpr std::uint32_t kInlinedBytes = 256;

/// Spare bytes before the payload of every slot: header and extensions of any frame without gather entries
/// fit.
inline constexpr std::uint32_t kSlotHeadroom = 64;

/// Spare bytes behind the payload of a send slot. Metadata may fill a slot, and then makes place for what
/// stands in front of it in the frame of a large message: the head of a list of gather entries, and one
/// gather entry.
inline constexpr std::uint32_t kSlotTail = 64;

/// A message, its metadata counted, that goes in several SENDs: at most so long, whatever the device would
/// like. What its receiver puts it together in.
inline constexpr std::uint32_t kSegmentedBytesMax = 32 * 1024;
/// SENDs before the last one of such a message: with it they are one post (kPostBatch).
inline constexpr std::uint32_t kSegmentsMax = 31;
/// Bytes between two of them in the send slot: the seal of one, the header of the next.
inline constexpr std::uint32_t kSegmentGap = 32;
/// Send slots for such messages, of all sessions of a context: half a window. When they are all under way the
/// next message goes as a large one does.
inline constexpr std::uint32_t kLongSlots = 128;
/// Places where they are put together, until JS has read them: those of four batches. The completion queue is
/// left alone while there are none.
inline constexpr std::uint32_t kReassembledMessages = 128;
/// Places for short messages that JS has not read yet: those of two batches, as a batch may come while one is
/// read.
inline constexpr std::uint32_t kShortMessages = 2 * 32;

/// One READ work request of a bulk transfer. Large enough to reach full bandwidth, small enough that other
/// calls get in between. 20 bits of a work request's record name it.
inline constexpr std::uint32_t kChunkBytes = 512 * 1024;
/// Bytes that a session, and in a session a call, moves before the next one has its turn. No less than a
/// chunk, so that each turn moves something. A call of a MiB, or two, is moved in one: in turns with others
/// what it has read leaves the cache before it is answered (ARCHITECTURE, "Small beside large").
inline constexpr std::int64_t kQuantumBytes = 4 * kChunkBytes;
/// WRITEs of a session that have been posted and that the device has not reported: what a frame posted now
/// has before it. Two of them at least, so that the wire does not wait for the next post. 100 Gb/s take 20 us
/// for it, by arithmetic.
inline constexpr std::uint32_t kWriteAheadBytes = 256 * 1024;
inline constexpr std::uint32_t kWriteChunkBytes = kWriteAheadBytes / 2;
/// A completion is asked for after so many bytes of WRITEs.
inline constexpr std::uint32_t kWriteSignalBytes = kWriteAheadBytes / 4;
/// READs of all sessions of a context: what peers have been asked to send at once. A session has half of it
/// at most.
inline constexpr std::uint64_t kReadBytesMax = std::uint64_t{16} << 20;
/// A session without READs under way gets one of this size although others have them all. A small frame waits
/// for one of each session at most.
inline constexpr std::uint32_t kReadLeastBytes = 64 * 1024;
/// READs whose peer sends less than kChunkBytes of them in this time count for their session alone, which has
/// one at a time then.
inline constexpr std::uint64_t kReadSlowNs = 2'000'000'000;
/// A peer must move bulk data on: in this time all that is under way, or this much of it. Else its session
/// ends. Both are counted on the awake clock (kAwakeStepNs).
inline constexpr std::uint64_t kBulkStillNs = 30'000'000'000;
inline constexpr std::uint64_t kBulkLeastBytes = 1024 * 1024;
/// In each period a client has to take one part in this number of all answers that wait, if that is more. So
/// it has taken everything after this number of periods, however much it is.
inline constexpr std::uint64_t kBulkPeriods = 16;
/// While other calls wait for memory, a peer has less time. In this time it must move ...
inline constexpr std::uint64_t kGiveUpNs = 3'000'000'000;
/// ... this number of bytes, all that is left, or one part in kBulkPeriods of all the memory that it keeps
/// in use. Else it loses that memory: its calls end, or its session where only that gives the memory back.
/// Requests and answers are counted apart, on the awake clock.
inline constexpr std::uint64_t kGiveUpBytes = 128 * 1024;
/// How long calls must have waited for memory before somebody loses some.
inline constexpr std::uint64_t kGiveUpWaitNs = 1'000'000'000;
/// How long a stream may keep large messages that its reader does not come to, while other calls wait for
/// memory. Each message that is read gives it this time again.
inline constexpr std::uint64_t kUnreadStreamNs = 30'000'000'000;
/// How long a client may take to grant memory for an answer, where the call has no deadline. One whose thread
/// is blocked or stopped for less is only slow.
inline constexpr std::uint64_t kReplyBufferWaitNs = 120'000'000'000;

/// READs and WRITEs that all sessions post in one turn of the loop, ...
inline constexpr std::uint32_t kPostedBytesPerTurn = 4 * 1024 * 1024;
/// ... and where the post is a copy by this thread: some 400 us, by arithmetic, ...
inline constexpr std::uint32_t kCopiedBytesPerTurn = 4 * 1024 * 1024;
/// ... or, by arithmetic, 7 us while there are small calls ...
inline constexpr std::uint32_t kSliceBytes = 64 * 1024;
/// ... and for so long after one.
inline constexpr std::uint64_t kSmallTrafficNs = 1'000'000;

/// What the staging memory of a session grows by.
inline constexpr std::size_t kStagingChunkBytes = 256 * 1024;
/// Staging memory where the user says nothing of it: room for many calls whatever the largest one may be.
inline constexpr std::size_t kStagingBytesLeast = std::size_t{16} << 20;
/// A reply buffer of the caller that is a larger part of the staging memory than one by so many is not
/// offered with the request, since the answer may be small: the server asks for what it needs.
inline constexpr std::size_t kStagingShare = 4;

/// Depth of a send queue: twice the calls in flight within these bounds, so that many small sessions are
/// cheap. Powers of two.
inline constexpr std::uint32_t kSendQueueDepthMin = 64;
inline constexpr std::uint32_t kSendQueueDepthMax = 512;
/// What asks for no completion of its own does so after this part of the queue. The rest must hold a full
/// post.
inline constexpr std::uint32_t kSignalShare = 8;
/// Work requests prepared before one post (one doorbell).
inline constexpr std::uint32_t kPostBatch = 32;
inline constexpr std::uint32_t kSgeMax = 16;

/// Events handed to JS at once. Larger batches make the two processes take turns instead of overlapping.
inline constexpr std::uint32_t kEventsMax = 32;
/// Polls for CANCELs before bulk data is moved that JS has answered with.
inline constexpr std::uint32_t kDrainPollsMax = 8;
/// Submissions that JS may stage before it must flush.
inline constexpr std::uint32_t kSubmissionsMax = 64;

/// How long a cancelled call with exposed memory waits for the peer's last word, which says whether the
/// handler ran, and then for its windows to be invalid, before its caller is told all the same. (Soft-RoCE
/// invalidates when all that was sent before is acknowledged, and sends a lost packet again after 67 ms.)
inline constexpr std::uint64_t kSettleGraceNs = 10'000'000;
/// How long a caller that has lent its request waits for the CANCEL to arrive while the device completes
/// nothing at all: then the wire stands still, and the session ends, since only that makes the memory safe.
/// Longer than links and drivers take to come round (soft-RoCE: two seconds), shorter than their retries.
inline constexpr std::uint64_t kStuckWireNs = 3'000'000'000;
/// How long it is then held: call slot, keys and memory. A peer whose thread is blocked or stopped for less
/// is only slow; one that never answers costs its session.
inline constexpr std::uint64_t kHoldLimitNs = 120'000'000'000;
/// How often somebody looks for that.
inline constexpr std::uint64_t kHoldCheckNs = 100'000'000;

/// How long frames may wait for credits without the peer returning one: a peer whose thread is blocked or
/// stopped for less than this is only slow.
inline constexpr std::uint64_t kNoCreditNs = 120'000'000'000;
/// The same while no send slot is free: waiting frames hold them, and all sessions of the context share them.
inline constexpr std::uint64_t kNoCreditShortNs = 30'000'000'000;
/// These limits are counted on a clock that only runs while this thread does: of the time between two turns
/// no more than this counts. Who was stopped for a minute finds the answers first.
inline constexpr std::uint64_t kAwakeStepNs = 100'000'000;

/// An arena is made of at least so many chunks.
inline constexpr std::size_t kArenaChunksMin = 64;
/// Bulk transfers that may wait for arena memory, per context; one more is refused.
inline constexpr std::size_t kMemoryWaitersMax = 4096;
/// How long one of them may wait at the head of the queue. Longer than handlers keep large messages, shorter
/// than most time limits of calls, so that the caller's error names the memory.
inline constexpr std::uint64_t kMemoryWaitNs = 10'000'000'000;
/// After how long the application is told, once, that calls wait.
inline constexpr std::uint64_t kMemoryShortNs = 1'000'000'000;
/// Of the time between two checks of the queue no more than this counts: a thread that was busy or stopped
/// could not give memory back.
inline constexpr std::uint64_t kMemoryCheckNs = 100'000'000;
/// Slots behind the receives for the metadata of requests that have waited for memory: so many of a session
/// are fetched at once.
inline constexpr std::uint32_t kOverflowSlots = 4;

/// Text of an error response, bytes.
inline constexpr std::size_t kErrorTextMax = 1024;

}  // namespace rdma_rpc::session
