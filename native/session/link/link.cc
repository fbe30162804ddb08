// See link.h.
#include "session/link/link.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::EvKind;
namespace ev = boundary::ev;

namespace {
SessionOptions with_defaults(SessionOptions options, std::uint32_t slot_bytes) {
  if (options.call_slots == 0) options.call_slots = options.inflight_max;
  if (options.peer_slot_bytes == 0) options.peer_slot_bytes = slot_bytes;
  return options;
}
}  // namespace

Link::Link(Shared& shared, std::uint32_t number, const SessionOptions& options)
    : shared_(shared),
      number_(number),
      options_(with_defaults(options, shared.slot_bytes)),
      capabilities_(shared.device->capabilities()),
      owner_(shared.arena.add_owner(options.arena_max_bytes)),
      receives_(shared, number, options.inflight_max + kControlReceives),
      recorder_(shared.event_rings, shared.now_ns, number, table_index()) {}

Link::~Link() {
  qp_.reset();
  shared_.arena.remove_owner(owner_);
}

std::string Link::open_resources(const SendQueue::QueueLimits& queue_limits) {
  const std::uint32_t depth = SendQueue::depth_for(options_.inflight_max, capabilities_.max_qp_wr);
  std::string why =
      receives_.open({.may_share = options_.credit_pool, .opens_in_place = options_.seal.has_value()});
  if (!why.empty()) return why;
  if (why = open_staging(); !why.empty()) return why;
  fabric::QpOptions queues{.send_wr_max = depth - capabilities_.own_sends,
                           .active = options_.is_active(),
                           .polls_on = true,
                           .flush_together = true,
                           .max_sge = kSgeMax,
                           .max_inline = SendQueue::inline_max(capabilities_),
                           .connect_timeout_ms = options_.connect_timeout_ms};
  receives_.describe(queues);
  qp_ = shared_.device->create_qp(*shared_.cq, queues, &why);
  if (qp_ == nullptr) return why;
  if (options_.seal) {
    sealing_ = Sealing::open(*options_.seal, &why);
    if (sealing_ == nullptr) return why;
  }
  send_ = std::make_unique<SendQueue>(*qp_, capabilities_, shared_.slots, shared_.stats, recorder_,
                                      wr_id_base(number_), queue_limits, depth, receives_.depth(),
                                      shared_.counters_start);
  send_->seal_by(sealing_.get());
  if (options_.credit_pool) {
    const std::uint32_t certain = std::min(receives_.depth(), kCertainReceives);
    send_->begin_with(certain);
    // The session's own receives beyond the guaranteed number are granted to the peer with the first frame.
    if (!receives_.shares()) send_->owe_credits(receives_.depth() - certain);
  }
  if (options_.peer_takes_segments) {
    const std::uint32_t room = frame_room() * (1 + send_->segments_max());
    segmented_bytes_ = std::min({shared_.segmented_bytes, kSegmentedBytesMax, room});
    if (segmented_bytes_ <= frame_room()) segmented_bytes_ = 0;
  }
  return "";
}

std::string Link::open_staging() {
  const bool exposes = options_.client && shared_.exposure == Exposure::staging;
  const bool lands =
      !options_.client && shared_.exposure != Exposure::shared && capabilities_.read_sink_needs_remote_write;
  if (!exposes && !lands) return "";
  std::size_t bytes = options_.staging_bytes;
  if (bytes == 0) {
    const std::uint32_t largest = std::max(options_.max_message_bytes, options_.peer_max_message_bytes);
    bytes = std::max<std::size_t>(kStagingBytesLeast, wire::aligned_bytes_max(largest));
  }
  if (bytes < shared_.slot_bytes) {
    return "stagingBytes (" + std::to_string(bytes) + ") must be at least slotBytes (" +
           std::to_string(shared_.slot_bytes) + ")";
  }
  const std::uint32_t rights = fabric::access_remote_write | (exposes ? fabric::access_remote_read : 0u);
  staging_ = std::make_unique<Staging>(*shared_.device, bytes, rights);
  return "";
}

void Link::protocol_error(const char* reason) {
  ++shared_.stats.protocol_errors;
  fail(std::string("protocol error by the peer: ") + reason);
}

void Link::begin_stall() {
  stalled_since_ns_ = std::max<std::uint64_t>(shared_.awake_ns, 1);
  ++stalls_;
  ++shared_.stats.stalls;
}

void Link::end_stall() {
  const std::uint64_t stalled_ns = shared_.awake_ns - std::min(shared_.awake_ns, stalled_since_ns_);
  stalled_since_ns_ = 0;
  stalled_ns_ += stalled_ns;
  shared_.stats.stalled_ns += stalled_ns;
}

void Link::report(telemetry::SessionRow& row) const {
  row.state = state_ == SessionState::ready ? 2 : is_open() || state_ == SessionState::init ? 1 : 3;
  row.number = number_;
  row.client = options_.client ? 1 : 0;
  row.credits = send_->credits();
  row.credits_max = send_->credits_max();
  row.waiting = send_->waiting_count();
  row.frames_in = received_;
  row.frames_out = send_->frames_sent();
  row.bytes_in = received_bytes_;
  row.bytes_out = send_->bytes_sent();
  row.stalls = stalls_;
  row.stalled_ns = stalled_ns_;
}

/// Returns the error text for a failed completion. A flushed completion is only the consequence of another
/// error, which the queue pair may know.
std::string Link::why_failed(const char* what, const fabric::Wc& wc) const {
  const std::string more = qp_->error();
  if (wc.status == fabric::WcStatus::wr_flush_err && !more.empty()) return more;
  std::string why = std::string(what) + fabric::to_string(wc.status);
  if (wc.vendor_err != 0) {
    char code[32];
    std::snprintf(code, sizeof code, ", vendor_err 0x%x", wc.vendor_err);
    why += code;
  }
  return more.empty() ? why : why + " (" + more + ")";
}

bool Link::post_receives() {
  if (!receives_.has_consumed()) return true;
  std::string why;
  const std::optional<std::uint32_t> more = receives_.post(*qp_, &why);
  if (!more) {
    fail(why);
    return false;
  }
  // The peer's initial credits are for the receives that are posted first. Later receives must be announced
  // to the peer.
  if (receives_.shares() || state_ != SessionState::init) send_->owe_credits(*more);
  return true;
}

void Link::control(wire::FrameType type, std::uint32_t call, std::uint32_t method,
                   const wire::ReplyBuffer* reply_buffer, SendQueue::Done done) {
  std::uint8_t flags = reply_buffer != nullptr ? wire::has_reply_buffer : 0;
  if (reply_buffer != nullptr && shared_.exposure != Exposure::window) flags |= wire::lasting;
  const wire::Header header = wire::Header::of(type, call, method, flags);
  if (!send_->send_control(header, reply_buffer, done)) {
    protocol_error("too many control frames wait because the peer returns no credits");
  }
}

/// Spreads the payload of a long slot into segments. Each part that does not fit the first frame is moved, so
/// that it has room for a header before it and a tag behind it. The first part stays in place.
SendQueue::Tail Link::spread(std::uint32_t slot, std::uint32_t call, std::uint32_t bytes) {
  const std::uint32_t each = frame_room();
  if (bytes <= each) return {};
  std::byte* payload = shared_.slots.payload(slot);
  const wire::Header header = wire::Header::of(wire::FrameType::segment, call);
  // The loop runs from the back, because each part moves to the position of the part behind it.
  for (std::uint32_t part = (bytes - 1) / each; part > 0; --part) {
    const std::uint32_t from = part * each;
    std::byte* to = payload + from + part * kSegmentGap;
    std::memmove(to, payload + from, std::min(each, bytes - from));
    std::memcpy(to - sizeof header, &header, sizeof header);
  }
  return {payload + each + kSegmentGap - sizeof header, bytes - each, each};
}

bool Link::put_together(Event& event, const wire::Frame& frame) {
  if (segments_.empty()) return true;
  const std::optional<std::uint32_t> taken = shared_.reassembled_messages.take();
  if (!taken) {
    fail("no room to reassemble a message that came in segments");
    return false;
  }
  const std::uint32_t offset = *taken;
  const std::uint32_t first = frame.message_bytes - segments_.bytes();
  const ReceiveSlot slot = receives_.slot(static_cast<std::uint32_t>(event.word[ev::receive_slot] - 1));
  std::memcpy(shared_.reassembled_messages.data() + offset, receives_.at(slot) + frame.message_offset, first);
  segments_.copy_to(shared_.reassembled_messages.data() + offset + first);
  event.set(ev::region, boundary::kReassembledMessage);
  event.set(ev::offset, offset);
  return true;
}

std::uint32_t Link::open_bulk(std::byte* data, std::uint32_t on_wire, std::uint64_t number, bool shared) {
  const std::uint32_t plain = plain_bytes(on_wire);
  return plain != 0 && sealing_->open_bulk(data, plain, number, shared) ? plain : 0;
}

std::uint32_t Link::add_number(std::uint32_t slot, std::uint32_t bytes, std::uint64_t number) {
  if (sealing_ == nullptr) return 0;
  std::memcpy(shared_.slots.payload(slot) + bytes, &number, kBulkNumberBytes);
  return kBulkNumberBytes;
}

void Link::send_message(std::uint32_t slot, wire::Header header, const wire::ReplyBuffer* reply_buffer,
                        std::uint32_t metadata_bytes, std::uint32_t payload_bytes,
                        std::uint32_t invalidate_rkey, SendQueue::Done done) {
  std::byte* start = shared_.slots.payload(slot);
  SendQueue::Tail tail;
  if (shared_.slots.is_long(slot)) tail = spread(slot, header.call, payload_bytes);
  std::uint32_t bytes = payload_bytes - tail.bytes;
  const auto prepend = [&](const void* extension, std::uint32_t extension_bytes) {
    start -= extension_bytes;
    bytes += extension_bytes;
    std::memcpy(start, extension, extension_bytes);
  };
  if (metadata_bytes != 0) {
    header.flags |= wire::has_metadata;
    const wire::MetadataLength length{metadata_bytes, 0};
    prepend(&length, sizeof length);
  }
  if (reply_buffer != nullptr) {
    header.flags |= wire::has_reply_buffer;
    prepend(reply_buffer, sizeof *reply_buffer);
  }
  prepend(&header, sizeof header);
  if (!send_->send({slot, start, bytes, invalidate_rkey, done, tail})) {
    protocol_error("too many frames wait because the peer returns no credits");
  }
}

void Link::emit_sent(std::uint32_t& token) {
  if (token == 0) return;
  Event event = Event::of(EvKind::sent, number_);
  event.set(ev::token, token);
  shared_.events.emit(event);
  token = 0;
}

}  // namespace rdma_rpc::session
