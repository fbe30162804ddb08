// The link of a session: its queue pair, the send queue, the receives and the credits for them, and what both
// halves do with these. It knows no calls. A Session is one, with a half beside it (client/client_half.h,
// server/server_half.h); the halves use it. On the context's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/free_list.h"
#include "session/link/sealing.h"
#include "session/link/segments.h"
#include "session/link/send_queue.h"
#include "session/link/staging.h"
#include "session/shared.h"
#include "session/wire.h"
#include "telemetry/counters_page.h"

namespace rdma_rpc::session {

enum class SessionState : std::uint8_t { init, connecting, ready, draining, down };

class Link {
 public:
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  std::uint32_t number() const { return number_; }
  /// Its place among the sessions of the context.
  std::uint32_t place() const { return number_ & (kSessionPlaces - 1); }
  /// Calls may be submitted, frames may come in.
  bool is_open() const { return state_ == SessionState::connecting || state_ == SessionState::ready; }
  /// Ends the session, for this reason; nothing when it has ended.
  virtual void fail(const std::string& reason) = 0;
  void protocol_error(const char* reason);

  // --- which turns look at it
  SetBits& sets() { return sets_; }
  /// Something has happened to it, or waits for something that others bring about: the turn looks at it.
  void touch() { shared_.sets.touched.add(sets_, number_); }

  // --- what halves are made with
  Shared& shared() const { return shared_; }
  const SessionOptions& options() const { return options_; }
  const fabric::Capabilities& capabilities() const { return capabilities_; }
  /// How long frames have waited for credits by now without one coming, on the awake clock.
  std::uint64_t no_credit_ns() const {
    return stalled_since_ns_ == 0 ? 0 : shared_.awake_ns - std::min(shared_.awake_ns, stalled_since_ns_);
  }
  /// As which it holds memory of the arena.
  memory::OwnerId owner() const { return owner_; }
  SendQueue& send() const { return *send_; }
  fabric::QueuePair& queue_pair() const { return *qp_; }
  /// Null: it has none.
  Staging* staging() const { return staging_.get(); }
  const telemetry::Recorder& recorder() const { return recorder_; }

  // --- seals
  /// Null: nothing is sealed.
  Sealing* sealing() const { return sealing_.get(); }
  /// What a message of so many bytes takes where the peer can see it.
  std::uint64_t on_wire(std::uint64_t bytes) const {
    return sealing_ == nullptr ? bytes : sealed_bytes(bytes);
  }
  /// Opens a message of `on_wire` bytes. Its length, 0: the peer has not sealed it.
  std::uint32_t open_bulk(std::byte* data, std::uint32_t on_wire, std::uint64_t number, bool shared);
  /// Puts the number of the message behind `bytes` bytes of payload. Returns how many it takes, 0 in the
  /// clear.
  std::uint32_t add_number(std::uint32_t slot, std::uint32_t bytes, std::uint64_t number);

  // --- frames out
  /// Builds header and extensions before the payload of a slot and sends the frame.
  void send_message(std::uint32_t slot, wire::Header header, const wire::Sink* sink,
                    std::uint32_t metadata_bytes, std::uint32_t payload_bytes, std::uint32_t invalidate_rkey,
                    SendQueue::Done done);
  /// Metadata and message that go together in segments, when they do not fit one frame; 0: nothing does.
  std::uint32_t segmented_bytes() const { return segmented_bytes_; }
  /// What a frame may have behind its header and a sink: metadata, list and message.
  std::uint32_t frame_room() const { return std::min(shared_.slot_bytes, options_.peer_slot_bytes); }
  /// A response of so many bytes will not be written: with segments it fits.
  bool fits_frames(std::uint32_t bytes) const {
    return bytes <= std::max(shared_.slot_bytes, segmented_bytes_);
  }
  /// What came in segments is put together for JS, which gets it with this event. For REQUEST and SETTLED,
  /// before anything of the call changes. Returns false when the session has failed, for want of a place.
  bool put_together(boundary::Event& event, const wire::Frame& frame);
  bool has_segments() const { return !segments_.empty(); }
  void control(wire::FrameType type, std::uint32_t call, std::uint32_t method,
               const wire::Sink* sink = nullptr, SendQueue::Done done = SendQueue::Done());
  void post_now() {
    if (!send_->is_open()) return;
    unposted_ = send_->post();
    if (!send_->waiting()) {
      if (stalled_since_ns_ != 0) end_stall();
    } else if (stalled_since_ns_ == 0) {
      begin_stall();
    }
  }
  /// What others may see of it.
  void report(telemetry::SessionRow& row) const;
  void emit_sent(std::uint32_t& token);

  // --- receives
  /// The memory of the window that the receive slot is in (boundary::receive_window), for JS. Empty when the
  /// session has no such slot.
  std::span<std::byte> receive_window(std::uint32_t receive_slot) const {
    const std::size_t bytes = readable_bytes();
    if (std::size_t{receive_slot} * receive_stride_ >= bytes) return {};
    const std::size_t start = std::size_t{boundary::window_start(receive_slot)} * receive_stride_;
    const std::size_t end = std::size_t{boundary::window_end(receive_slot)} * receive_stride_;
    return {readable_at() + start, std::min(end, bytes) - start};
  }
  /// Those windows are the ones of all sessions that share receives.
  bool windows_are_shared() const { return shares() && copies_ == nullptr; }
  /// Its receives are shared with other sessions.
  bool shares() const { return member_.has_value(); }
  /// Frames that its peer may still send to shared receives.
  std::uint32_t granted() const { return shares() && is_open() ? send_->granted() : 0; }
  std::uint32_t receive_depth() const { return receive_depth_; }
  /// Frames that have come in, counting on.
  std::uint32_t received() const { return received_; }
  /// The memory that the bytes of a frame in that receive slot are in, as JS has it, and where in it.
  std::byte* memory_of(std::uint32_t receive_slot) const {
    return BriefMessages::has(receive_slot)
               ? shared_.brief.data()
               : readable_at() + std::size_t{boundary::window_start(receive_slot)} * receive_stride_;
  }
  std::uint32_t offset_of(std::uint32_t receive_slot) const {
    return BriefMessages::has(receive_slot)
               ? BriefMessages::offset_of(receive_slot)
               : (receive_slot - boundary::window_start(receive_slot)) * receive_stride_;
  }
  /// A receive slot that JS has read: posted again with the next finish_turn().
  void recycle(std::uint32_t receive_slot) {
    if (BriefMessages::has(receive_slot)) return shared_.brief.release(receive_slot, number_);
    touch();
    if (receive_slot >= first_spill_) return spill_slots_.give(receive_slot);
    if (copies_ == nullptr) return consumed_.push_back(receive_slot);
    // Any of those that copies have been made of will do. None is left when no copy is in use: then this slot
    // is free already.
    const std::optional<std::uint32_t> receive = copied_.take();
    if (!receive) return;
    copy_slots_.give(receive_slot);
    consumed_.push_back(*receive);
  }
  /// Returns a slot behind the receives, see kSpillSlots, or nothing when they are all taken.
  std::optional<std::uint32_t> take_spill_slot() { return spill_slots_.take(); }
  /// For one that was taken and not used.
  void give_spill_slot_back(std::uint32_t slot) { spill_slots_.give(slot); }
  bool has_spill_slot() const { return !spill_slots_.empty(); }
  /// Receives that are neither posted nor about to be: with JS, or with requests that wait.
  std::uint32_t receives_kept() const {
    const std::uint32_t away = shares() ? member_->taken : receive_depth_ - receives_posted_;
    return away + kSpillSlots + shared_.brief.kept_by(number_) -
           static_cast<std::uint32_t>(consumed_.size() + spill_slots_.size());
  }

  // --- the queue for arena memory
  /// Calls of this session wait for arena memory no longer: one of them, or (without a word) all.
  void forget_waiters(std::optional<std::uint32_t> call = std::nullopt);
  /// Calls of this session wait for arena memory. A part of a stream must then wait too, since parts are used
  /// in order: one that came later could hold, for ever, the memory that an earlier one waits for.
  bool has_waiters();

  // --- the memory of a bulk message: pieces.cc
  bool collect_pieces(const BulkSubmission& submission, std::vector<Piece>& pieces, boundary::Reason& reason);
  /// Instead of what it would lend, unless that is larger than the arena. False: there is no room now, and
  /// everything is as it was.
  bool copy_pieces(const BulkSubmission& submission, std::vector<Piece>& pieces);
  void release_pieces(std::vector<Piece>& pieces);

 protected:
  Link(Shared& shared, std::uint32_t number, const SessionOptions& options);
  virtual ~Link();
  /// Everything that the device must give. Empty, or what it refuses.
  std::string open_resources(const SendQueue::QueueLimits& queue_limits);
  // For Session::expect().
  /// Of whatever queue pair: its first lines.
  static constexpr std::size_t kQueuePairHotBytes = 384;
  void expect_link() const {
    send_->expect_frame();
    fabric::prefetch(qp_.get(), kQueuePairHotBytes);
    fabric::prefetch(recorder_.next(), 4 * sizeof(telemetry::EventRow));
  }
  void expect_copy_slots(const fabric::Wc& wc) const {
    if (copies_ == nullptr) return;
    fabric::prefetch(consumed_.data() + consumed_.size());
    if (wc.apart != nullptr) return;
    for (const fabric::FreeList<>* slots : {&copy_slots_, &copied_}) fabric::prefetch(slots->end());
  }
  void expect_copy(const fabric::Wc& wc) const {
    const std::uint32_t* slot = copy_slots_.peek();
    if (copies_ == nullptr || slot == nullptr || wc.bytes == 0 || wc.apart != nullptr) return;
    const std::byte* copy = copies_.get() + std::size_t{*slot} * receive_stride_;
    fabric::prefetch(copy, std::min(wc.bytes, 256u));
  }
  /// False: the session has failed.
  bool post_receives();
  /// A receive has come in, or so many of its own have been flushed.
  void take_receive(std::uint32_t slot, std::uint32_t count) {
    if (shares()) {
      shared_.shared_receives.came(*member_, number_, slot);
    } else {
      receives_posted_ -= count;
    }
  }
  /// Returns the receive slot that a frame which has come in is to be read in, or nothing when there is no
  /// slot for a copy. The frame must have been counted against the peer's credits: they are what bounds the
  /// copies.
  std::optional<std::uint32_t> readable(std::uint32_t receive, const fabric::Wc& wc);
  void begin_stall();
  void end_stall();
  std::string why_failed(const char* what, fabric::WcStatus status) const;

  Shared& shared_;
  const std::uint32_t number_;
  const SessionOptions options_;
  const fabric::Capabilities& capabilities_;
  SessionState state_ = SessionState::init;
  std::string error_;
  const memory::OwnerId owner_;

  std::uint32_t segmented_bytes_ = 0;
  Segments segments_;

  // Destroyed from the bottom up: the queue pair goes before the memory that its receives lie in.
  ReceivePool::Slab receive_memory_;
  std::unique_ptr<std::byte[]> copies_;  ///< as long as that, or null
  std::unique_ptr<Staging> staging_;     ///< client: in that mode; server: where READs may land nowhere else
  std::unique_ptr<fabric::QueuePair> qp_;
  std::unique_ptr<Sealing> sealing_;
  std::unique_ptr<SendQueue> send_;

  std::uint32_t receive_depth_, receive_stride_, receives_posted_ = 0;
  std::uint32_t first_spill_ = 0;
  std::optional<SharedReceives::Member> member_;  ///< none: its receives are its own
  const telemetry::Recorder recorder_;
  std::vector<std::uint32_t> consumed_;
  /// With copies_: its free slots, and the receives that the others are copies of. The slot that came free
  /// last is taken first: receives take turns through all of their memory, copies stay in the cache.
  fabric::FreeList<> copy_slots_, copied_;
  std::uint32_t copy_slots_made_ = 0;  ///< of receive_depth_: the others have never been needed
  fabric::FreeList<> spill_slots_;     ///< free slots behind the receives, see kSpillSlots
  SetBits sets_ = 0;
  bool drained_ = false, unposted_ = false;
  bool heard_ = false;          ///< a frame has come in
  std::uint32_t received_ = 0;  ///< frames, counting on
  /// On the awake clock, 0 none: frames wait since then, and no credit has come.
  std::uint64_t stalled_since_ns_ = 0;
  std::uint64_t received_bytes_ = 0, stalls_ = 0, stalled_ns_ = 0;

 private:
  std::string open_receives();
  std::string open_staging();
  SendQueue::Tail spread(std::uint32_t slot, std::uint32_t call, std::uint32_t bytes);
  std::byte* received_at() const {
    return shares() ? shared_.shared_receives.data() : receive_memory_.data();
  }
  /// What has been received, as it is read. Where peers can go on writing to receives this is a copy.
  std::byte* readable_at() const { return copies_ != nullptr ? copies_.get() : received_at(); }
  std::size_t readable_bytes() const {
    return copies_ != nullptr ? copies_bytes()
           : shares()         ? shared_.shared_receives.size()
                              : receive_memory_.size();
  }
  std::size_t copies_bytes() const { return std::size_t{receive_depth_ + kSpillSlots} * receive_stride_; }
  bool post_shared();
  /// What has been copied out of the text room for one message.
  struct Text {
    memory::BlockId block = memory::kNoBlock;
    std::size_t bytes = 0;
    std::size_t refused = 0;  ///< so many were asked for in vain
  };
  bool collect_text(const BulkSubmission& submission, const GivenPiece& given, Text& text,
                    std::vector<Piece>& pieces);
  bool stage(const BulkSubmission& submission, std::uint64_t extent, std::vector<Piece>& pieces);
};

/// What both halves use of their link all the time.
class Half {
 protected:
  explicit Half(Link& link)
      : link_(link),
        shared_(link.shared()),
        options_(link.options()),
        capabilities_(link.capabilities()),
        send_(link.send()),
        staging_(link.staging()),
        number_(link.number()) {}

  Link& link_;
  Shared& shared_;
  const SessionOptions& options_;
  const fabric::Capabilities& capabilities_;
  SendQueue& send_;
  Staging* const staging_;
  const std::uint32_t number_;
};

}  // namespace rdma_rpc::session
