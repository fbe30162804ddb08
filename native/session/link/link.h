// Implements the link of a session: its queue pair, the send queue, the receives and their credits, and the
// operations on these that both endpoints use. The link knows nothing of calls. A Session is a Link and has
// an endpoint (endpoint.h) that uses it. This code runs on the context's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "session/link/receives.h"
#include "session/link/sealing.h"
#include "session/link/segments.h"
#include "session/link/send_queue.h"
#include "session/link/staging.h"
#include "session/session_options.h"
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
  /// Returns the session's index in the session table of the context.
  std::uint32_t table_index() const { return number_ & (kSessionsMax - 1); }
  /// Returns true while calls may be submitted and frames may arrive.
  bool is_open() const { return state_ == SessionState::connecting || state_ == SessionState::ready; }
  /// Ends the session for this reason; does nothing when the session has ended.
  virtual void fail(const std::string& reason) = 0;
  void protocol_error(const char* reason);

  // --- the sets of sessions that turns visit
  SetBits& sets() { return sets_; }
  /// Marks the session for the next turn, because its state has changed, or because it waits for an event
  /// that other sessions cause.
  void touch() { shared_.sets.touched.add(sets_, number_); }

  // --- what endpoints are created with
  Shared& shared() const { return shared_; }
  const SessionOptions& options() const { return options_; }
  const fabric::Capabilities& capabilities() const { return capabilities_; }
  /// Returns for how long frames have waited for credits without receiving one, on the awake clock.
  std::uint64_t no_credit_ns() const {
    return stalled_since_ns_ == 0 ? 0 : shared_.awake_ns - std::min(shared_.awake_ns, stalled_since_ns_);
  }
  /// Returns the owner under which the session holds arena memory.
  memory::OwnerId owner() const { return owner_; }
  SendQueue& send() const { return *send_; }
  fabric::QueuePair& queue_pair() const { return *qp_; }
  /// Returns null when the session has no staging memory.
  Staging* staging() const { return staging_.get(); }
  const telemetry::Recorder& recorder() const { return recorder_; }

  // --- seals
  /// Returns null when the session is not sealed.
  Sealing* sealing() const { return sealing_.get(); }
  /// Returns the length of a message as the peer sees it, including seals.
  std::uint64_t on_wire(std::uint64_t bytes) const {
    return sealing_ == nullptr ? bytes : sealed_bytes(bytes);
  }
  /// Decrypts a message of `on_wire` bytes. Returns the frame's decrypted length, or 0 when the peer has not
  /// sealed the frame.
  std::uint32_t open_bulk(std::byte* data, std::uint32_t on_wire, std::uint64_t number, bool shared);
  /// Appends the number of the message to the `bytes` bytes of payload. Returns the length of the number, 0
  /// when the session is not sealed.
  std::uint32_t add_number(std::uint32_t slot, std::uint32_t bytes, std::uint64_t number);

  // --- outgoing frames
  /// Builds header and extensions before the payload of a slot and sends the frame.
  void send_message(std::uint32_t slot, wire::Header header, const wire::ReplyBuffer* reply_buffer,
                    std::uint32_t metadata_bytes, std::uint32_t payload_bytes, std::uint32_t invalidate_rkey,
                    SendQueue::Done done);
  /// Returns the limit of metadata and message together that are sent in segments when they do not fit one
  /// frame, or 0 when segments are not used.
  std::uint32_t segmented_bytes() const { return segmented_bytes_; }
  /// Returns the number of bytes in a frame behind header and reply buffer, for metadata, gather list and
  /// message.
  std::uint32_t frame_room() const { return std::min(shared_.slot_bytes, options_.peer_slot_bytes); }
  /// Returns whether a response of this length is sent in frames, if necessary in segments, instead of being
  /// written to the reply buffer.
  bool fits_frames(std::uint32_t bytes) const {
    return bytes <= std::max(shared_.slot_bytes, segmented_bytes_);
  }
  /// Reassembles a message in segments; JS gets it with this event. This function is called for REQUEST and
  /// SETTLED, before the state of the call changes. Returns false when no buffer was free; the session has
  /// then failed.
  bool put_together(boundary::Event& event, const wire::Frame& frame);
  bool has_segments() const { return !segments_.empty(); }
  void control(wire::FrameType type, std::uint32_t call, std::uint32_t method,
               const wire::ReplyBuffer* reply_buffer = nullptr, SendQueue::Done done = SendQueue::Done());
  void post_now() {
    if (!send_->is_open()) return;
    unposted_ = send_->post();
    if (!send_->waiting()) {
      if (stalled_since_ns_ != 0) end_stall();
    } else if (stalled_since_ns_ == 0) {
      begin_stall();
    }
  }
  /// Writes the state of the session to its row of the counters page.
  void report(telemetry::SessionRow& row) const;
  void emit_sent(std::uint32_t& token);

  // --- receives
  Receives& receives() { return receives_; }
  const Receives& receives() const { return receives_; }
  /// Returns the number of frames that the session's peer may still send to shared receives.
  std::uint32_t granted() const { return receives_.shares() && is_open() ? send_->granted() : 0; }
  /// Returns the total number of received frames.
  std::uint32_t received() const { return received_; }
  /// Recycles a slot that JS or a request has finished with. The slot's receive is reposted with the next
  /// finish_turn().
  void recycle(ReceiveSlot slot) {
    // The receive of a short slot was reposted when its message was copied, so the session does not have to
    // be marked for a turn.
    if (!slot.is_short()) touch();
    receives_.recycle(slot);
  }
  /// Releases the slot of an event that is not delivered, if it has one.
  void recycle_of(const boundary::Event& event) {
    if (const std::int32_t word = event.word[boundary::ev::receive_slot]; word != 0)
      recycle(receives_.slot(static_cast<std::uint32_t>(word - 1)));
  }

  /// Returns true while calls of this session wait for arena memory. A part of a stream must then wait, too.
  /// Parts are used in order. Otherwise a later part could keep the memory for which an earlier part waits.
  bool has_waiters() { return shared_.memory_waiters.has(number_); }

 protected:
  Link(Shared& shared, std::uint32_t number, const SessionOptions& options);
  virtual ~Link();
  /// Allocates all resources of the device. Returns "", or an error text that names the resource that the
  /// device refuses.
  std::string open_resources(const SendQueue::QueueLimits& queue_limits);
  // The following members prefetch for Session::expect().
  /// Number of bytes at the start of the queue pair object that Session::expect() prefetches.
  static constexpr std::size_t kQueuePairHotBytes = 384;
  void expect_link() const {
    send_->expect_frame();
    fabric::prefetch(qp_.get(), kQueuePairHotBytes);
    fabric::prefetch(recorder_.next(), 4 * sizeof(telemetry::EventRow));
  }
  /// Returns false when the session has failed.
  bool post_receives();
  void begin_stall();
  void end_stall();
  std::string why_failed(const char* what, const fabric::Wc& wc) const;

  Shared& shared_;
  const std::uint32_t number_;
  const SessionOptions options_;
  const fabric::Capabilities& capabilities_;
  SessionState state_ = SessionState::init;
  std::string error_;
  const memory::OwnerId owner_;

  std::uint32_t segmented_bytes_ = 0;
  Segments segments_;

  // Members are destroyed in reverse order: the queue pair before the memory of its receives.
  Receives receives_;
  std::unique_ptr<Staging> staging_;  ///< client: in staging mode; server: where READs need it
  std::unique_ptr<fabric::QueuePair> qp_;
  std::unique_ptr<Sealing> sealing_;
  std::unique_ptr<SendQueue> send_;

  const telemetry::Recorder recorder_;
  SetBits sets_ = 0;
  bool drained_ = false, unposted_ = false;
  bool heard_ = false;          ///< a frame has been received
  std::uint32_t received_ = 0;  ///< number of frames received, which wraps
  /// Time since which frames have waited without receiving a credit. The time is on the awake clock; 0 when
  /// no frame waits.
  std::uint64_t stalled_since_ns_ = 0;
  std::uint64_t received_bytes_ = 0, stalls_ = 0, stalled_ns_ = 0;

 private:
  std::string open_staging();
  SendQueue::Tail spread(std::uint32_t slot, std::uint32_t call, std::uint32_t bytes);
};

}  // namespace rdma_rpc::session
