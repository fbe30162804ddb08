// Implements the sending side of a session. Work requests are prepared one by one and posted with one
// doorbell. Two limits bound their number: room in the send queue, and credits for the peer's receives.
// Frames wait here for either limit. Link owns this object, and both endpoints use it, on the context's
// thread. The two limits are separate because the completion of a send and the peer's credit for it arrive in
// no fixed order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "fabric/fabric.h"
#include "fabric/prefetch.h"
#include "session/bounded_queue.h"
#include "session/limits.h"
#include "session/link/sealing.h"
#include "session/send_slots.h"
#include "session/stats.h"
#include "session/wire.h"
#include "telemetry/recorder.h"

namespace rdma_rpc::session {

/// The action of the session when a work request has completed.
enum class Then : std::uint8_t {
  nothing,
  bulk_sent,   ///< ref: call slot of the server call whose response (and the WRITEs before it) has been sent
  chunk_read,  ///< ref: see ReadRef
  chunk_written,   ///< ref: number of bytes of WRITEs; used by the send queue only
  cancel_arrived,  ///< ref: call word of the client call whose CANCEL lies in the peer's receive queue
  invalidated,     ///< ref: call slot of the client call whose windows are being invalidated
  drained,         ///< the last work request before the queue pair may be destroyed
};

/// The server call slot of a READ, and the length of the READ.
struct ReadRef {
  static constexpr std::uint32_t kBytesBits = 20;
  std::uint32_t slot, bytes;
  std::uint32_t word() const { return slot << kBytesBits | bytes; }
  static ReadRef of(std::uint32_t word) { return {word >> kBytesBits, word & ((1u << kBytesBits) - 1)}; }
};
static_assert(kCallSlotsMax <= 1u << (32 - ReadRef::kBytesBits) && kChunkBytes < 1u << ReadRef::kBytesBits);

class SendQueue {
 public:
  struct Done {
    Then then = Then::nothing;
    std::uint32_t ref = 0;
  };
  /// Segments that are sent before a frame, from the same slot: `bytes` bytes of message in frames of `each`
  /// bytes (the last one may be shorter), with the header of the first frame at `start` and a gap between
  /// frames.
  struct Tail {
    std::byte* start = nullptr;
    std::uint32_t bytes = 0, each = 0;
    std::uint32_t count() const { return each == 0 ? 0 : (bytes + each - 1) / each; }
  };
  /// A frame in a send slot: `bytes` bytes that end with the message, and begin with the header at `start`.
  struct Outgoing {
    std::uint32_t slot = 0;
    std::byte* start = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t invalidate_rkey = 0;
    Done done;    ///< what to do on completion, besides releasing the slot
    Tail tail{};  ///< all of these segments are sent directly before the frame, or the frame is not sent
  };

  /// Limits of waiting frames: frames in send slots, and control frames. With a peer that returns credits,
  /// the calls in flight never need more.
  struct QueueLimits {
    std::size_t frames, control;
  };

  SendQueue(fabric::QueuePair& qp, const fabric::Capabilities& capabilities, SendSlots& slots, Stats& stats,
            const telemetry::Recorder& recorder, std::uint64_t wr_id_base, const QueueLimits& queue_limits,
            std::uint32_t depth, std::uint32_t credits, std::uint32_t sequence);
  /// Returns the depth for this number of calls in flight on a device that accepts `limit` work requests. The
  /// result is less than kSendQueueDepthMin when the device accepts too few work requests.
  static std::uint32_t depth_for(std::uint32_t inflight_max, std::uint32_t limit) {
    const std::uint32_t wanted =
        std::clamp(std::bit_ceil(2 * inflight_max), kSendQueueDepthMin, kSendQueueDepthMax);
    return std::min(wanted, std::bit_floor(limit));
  }

  /// Returns the largest number of bytes of a frame that are sent inline. The number is lower on a device
  /// that pins memory, because such a device reserves room for inline bytes in every entry of its send queue.
  /// Software devices reserve no room.
  static std::uint32_t inline_max(const fabric::Capabilities& can) {
    return can.pins_memory ? std::min(can.max_inline, kInlineMax) : can.max_inline;
  }

  /// Prefetches memory for a frame that will be sent: first this object, then the memory that it points to.
  void expect_frame() const {
    fabric::prefetch(this, kHotBytes);
    fabric::prefetch(&sges_[0]);
  }
  void expect_post() const {
    fabric::prefetch(&records_[sequence_ & (depth_ - 1)]);
    qp_.expect_posts();
  }

  /// Sends the frame now, or as soon as credits and room allow. The slot is released when the fabric has
  /// finished with it. Returns false when the queue is full (a protocol error).
  bool send(const Outgoing& frame);
  /// Sends a control frame, which overtakes waiting data frames but no other control frames. Returns false
  /// when the queue is full (a protocol error).
  bool send_control(const wire::Header& header, const wire::ReplyBuffer* reply_buffer, Done done);
  /// Sends the CANCEL of a call for which reserve_cancel() returned true. The CANCEL overtakes all other
  /// frames. The reserve of the call ends when the credit is used. Until then other frames must leave one
  /// credit for it, even while the CANCEL waits for room.
  void send_reserved_cancel(const wire::Header& header, Done done);

  /// Sets the object that seals every frame when the frame is posted. Must be called before the first frame.
  void seal_by(Sealing* sealing) { sealing_ = sealing; }
  /// Allows posting. Must be called when the queue pair is connected; until then the queue reports no room.
  void open() { open_ = true; }
  bool is_open() const { return open_; }

  /// Returns whether there is room for `count` work requests, at most kPostBatch.
  bool room(std::uint32_t count) {
    if (!open_) return false;
    if (prepared_ + count > kPostBatch) post_prepared();
    return prepared_ + count <= kPostBatch && sequence_ - retired_ + count <= most_;
  }
  /// Returns whether the queue has room for `count` binds and a frame, and all earlier work requests are
  /// posted. A bound key exists only after its bind was posted.
  bool can_bind(std::uint32_t count) {
    post_prepared();
    return prepared_ == 0 && room(count + 1);
  }
  /// Binds the window. Requires can_bind(). The window has its new key when this function returns.
  void bind(fabric::MemoryWindow& window, const fabric::MemoryRegion& region, std::uint64_t addr,
            std::uint64_t length, std::uint32_t access);
  void invalidate(std::uint32_t rkey, Done done);
  void read(const fabric::Sge& into, std::uint64_t remote_addr, std::uint32_t rkey, Done done);
  /// Prepares a WRITE. Requires may_write() of this number of bytes.
  void write(std::span<const fabric::Sge> from, std::uint64_t remote_addr, std::uint32_t rkey);
  /// Returns whether `bytes` bytes may be written now: at most kWriteAheadBytes of WRITEs may precede a later
  /// frame. (When a post copies the data, the limits of a turn of the loop apply in place of this one.)
  bool may_write(std::uint32_t bytes) {
    return capabilities_.copies_when_posted || writes_ahead_ + bytes <= kWriteAheadBytes ||
           may_write_on(bytes);
  }

  /// Returns the number of bytes of posted WRITEs that have not completed.
  std::uint32_t write_bytes_ahead() const { return writes_ahead_; }
  /// Total number of bytes of completed WRITEs.
  std::uint64_t write_bytes_completed() const { return write_bytes_completed_; }

  /// Posts only prepared work requests; waiting frames stay where they are.
  void ring() { post_prepared(); }
  /// Prepares the waiting frames that have room now, and rings the doorbell for all prepared work requests.
  /// Returns true while a prepared work request could not be posted, so that the caller must call again.
  bool post();

  /// Adds reposted receives: credits that the peer gets with the next frame.
  void owe_credits(std::uint32_t count) { owed_ += count; }
  /// Switches to a credit pool: both sides begin with this number of credits and get more later. Must be
  /// called before the first frame.
  void begin_with(std::uint32_t credits);
  /// Returns the number of frames that the peer may still send, including credits that were not sent to it
  /// yet.
  std::uint32_t granted() const { return peer_credits_ + owed_; }
  /// Counts a received frame, which costs the peer a credit. Returns false when the peer had no credit.
  bool count_received() { return peer_credits_-- != 0; }
  /// Adds the credits of a received frame. Returns false when their total is impossibly high.
  bool add_credits(std::uint32_t count) {
    credits_ += count;
    return credits_ <= credits_max_;
  }
  /// Returns how many segments may be sent with one frame. The peer returns credits when it owes half of the
  /// guaranteed ones. A message that needed more credits than will certainly be returned could wait for ever.
  /// The reserved credits are subtracted from that number.
  std::uint32_t segments_max() const {
    const std::uint32_t returned = credits_certain_ / 2, left_alone = kControlCredits + reserved_max_;
    return std::min({kSegmentsMax, returned - std::min(returned, left_alone), depth_ / 4});
  }
  std::uint32_t credits() const { return credits_; }
  std::uint32_t credits_max() const { return credits_max_; }
  /// Reserves a credit for the CANCEL of another call. The CANCEL then never waits for the peer to receive
  /// other frames, because all later frames, including other CANCELs, leave one credit for each reserve. The
  /// reserve ends with send_reserved_cancel() or release_reserve(). Returns false when another reserved
  /// credit could lead to a deadlock of the two sides.
  bool reserve_cancel() {
    if (reserved_ >= reserved_max_) return false;
    ++reserved_;
    return true;
  }
  void release_reserve() { --reserved_; }
  std::uint64_t frames_sent() const { return frames_sent_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::size_t waiting_count() const {
    return waiting_.size() + waiting_control_.size() + waiting_cancels_.size();
  }
  /// Returns true while frames wait for credits or for room.
  bool waiting() const { return !waiting_.empty() || !waiting_control_.empty() || !waiting_cancels_.empty(); }

  /// Retires all work requests up to `sequence`, which have completed. Calls `f(Done)` for each that has a
  /// Done.
  template <class F>
  void retire(std::uint32_t sequence, F&& f) {
    while (static_cast<std::int32_t>(sequence - retired_) > 0) {
      Record& record = record_of(retired_++);
      give_slot_back(record);
      if (record.then == Then::nothing) continue;
      if (record.then == Then::chunk_written) {
        writes_ahead_ -= record.ref;
        write_bytes_completed_ += record.ref;
        continue;
      }
      f(Done{record.then, record.ref});
    }
  }

  /// Returns true while a completion is pending.
  bool awaits_completion() const { return static_cast<std::int32_t>(last_signaled_ - retired_) > 0; }
  /// Total number of completed requests.
  std::uint32_t completed() const { return retired_; }

  /// Removes the waiting request frame of this call. Returns true when there was such a frame; it will then
  /// never be sent.
  bool remove(std::uint32_t call);
  /// Empties the queue when the queue pair is in ERR. Drops everything that was not posted, and calls
  /// `f(call)` for each dropped request frame. Then posts the last work request, whose completion shows that
  /// the queue is empty.
  template <class F>
  void drain(F&& f) {
    for (std::size_t i = 0; i < prepared_; ++i) {
      Record& record = record_of(first_prepared() + static_cast<std::uint32_t>(i));
      if (record.slot != kNoSlot && sealing_ != nullptr)
        report_unsent(reinterpret_cast<const std::byte*>(&headers_[i]), f);
      else if (record.slot != kNoSlot)
        report_unsent(reinterpret_cast<const std::byte*>(sges_[i].addr), f);
      give_slot_back(record);
      record = {kNoSlot, Then::nothing, 0};
    }
    prepared_ = 0;
    for (; !waiting_.empty(); waiting_.pop()) {
      report_unsent(waiting_.front().start, f);
      slots_.release(waiting_.front().slot);
    }
    while (!waiting_control_.empty()) waiting_control_.pop();
    while (!waiting_cancels_.empty()) waiting_cancels_.pop();
    post_drain();
  }

 private:
  /// Bytes from the start of this object that every send touches.
  static constexpr std::size_t kHotBytes = 512;
  static constexpr std::uint32_t kNoSlot = (1u << 24) - 1;
  /// The action of the session when a work request completes. Only the queue pair itself knows the kind of
  /// the work request.
  struct Record {
    std::uint32_t slot : 24;  ///< send slot to release, or kNoSlot
    Then then;
    std::uint32_t ref;
  };
  static_assert(sizeof(Record) == 8);
  struct Control {
    wire::Header header;
    wire::ReplyBuffer reply_buffer;
    bool has_reply_buffer;
    Done done;
  };

  template <class F>
  static void report_unsent(const std::byte* start, F&& f) {
    wire::Header header;
    std::memcpy(&header, start, sizeof header);
    if (header.type == static_cast<std::uint8_t>(wire::FrameType::request)) f(header.call);
  }
  bool may_write_on(std::uint32_t bytes);
  Record& record_of(std::uint32_t sequence) { return records_[sequence & (depth_ - 1)]; }
  std::uint32_t first_prepared() const { return sequence_ - static_cast<std::uint32_t>(prepared_); }
  void give_slot_back(Record& record) {
    if (record.slot != kNoSlot) slots_.release(record.slot);
    record.slot = kNoSlot;
  }
  bool may_send(std::uint32_t credits_left, std::uint32_t count = 1) {
    return credits_ >= credits_left + count && room(count);
  }
  fabric::SendWr& prepare(fabric::Opcode opcode, bool signaled, Done done, std::uint32_t slot = kNoSlot);
  void set_sges(fabric::SendWr& wr, std::span<const fabric::Sge> sges);
  std::uint16_t pay_credits();
  void count_sent(const wire::Header& header, std::uint32_t bytes) {
    recorder_.frame_out(header, bytes);
    ++frames_sent_;
    bytes_sent_ += bytes;
    stats_.sent_bytes += bytes;
  }
  bool credits_due() const;
  void prepare_frame(const Outgoing& frame);
  void prepare_in_slot(const Outgoing& frame, bool may_inline);
  void prepare_control(const Control& control);
  void move_cancels_up();
  void move_up();
  void post_prepared();
  void post_drain();

  fabric::QueuePair& qp_;
  const fabric::Capabilities& capabilities_;
  SendSlots& slots_;
  Stats& stats_;
  const telemetry::Recorder& recorder_;
  const std::uint64_t wr_id_base_;
  const std::uint32_t depth_;  ///< a power of two
  const std::uint32_t inline_max_;
  const std::uint32_t most_;  ///< limit of work requests in flight, besides the last two

  std::uint32_t credits_, credits_max_, credits_certain_;
  std::uint32_t owed_ = 0, owed_threshold_;
  bool pooled_ = false;
  std::uint32_t reserved_ = 0, reserved_max_;
  std::uint32_t peer_credits_;        ///< credits of the peer, including those on their way to it
  std::uint32_t sequence_, retired_;  ///< numbers of work requests prepared and completed
  std::uint32_t last_signaled_;       ///< sequence number of the last signaled work request
  std::uint32_t unsignaled_ = 0;
  std::uint64_t frames_sent_ = 0, bytes_sent_ = 0;
  std::uint32_t writes_ahead_ = 0;  ///< bytes of WRITEs that have not completed
  std::uint32_t unsignaled_write_bytes_ = 0;
  std::uint64_t write_bytes_completed_ = 0;
  bool open_ = false;
  // These members stand before the arrays, next to the other members that each post reads.
  BoundedQueue<Outgoing> waiting_;
  BoundedQueue<Control> waiting_control_, waiting_cancels_;

  /// One entry per work request in flight, by sequence number. An entry is written only when a work request
  /// is prepared, so that a session that sends little uses few pages.
  std::unique_ptr<Record[]> records_;
  std::size_t prepared_ = 0;
  std::array<fabric::SendWr, kPostBatch> wrs_;
  std::array<fabric::Sge, kPostBatch> sges_;  ///< for work requests with one gather entry
  /// Gather lists of work requests with several entries. Only bulk data has such work requests, so the lists
  /// are allocated for the first of them.
  using GatherLists = std::array<std::array<fabric::Sge, kSgeMax>, kPostBatch>;
  std::unique_ptr<GatherLists> lists_;
  std::array<std::array<std::byte, sizeof(wire::Header) + sizeof(wire::ReplyBuffer) + seal::kTagBytes>,
             kPostBatch>
      controls_;
  Sealing* sealing_ = nullptr;
  std::array<wire::Header, kPostBatch> headers_;  ///< plaintext headers of prepared frames that are sealed
};

}  // namespace rdma_rpc::session
