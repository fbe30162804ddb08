// Handles the events of a Side's context in place of JS: requests go to handlers, and ends of calls go to the
// ledger. See side.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "session/sides/side.h"

namespace rdma_rpc::session::test {

using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
namespace ev = boundary::ev;

namespace {
std::uint32_t u32(std::int32_t word) { return static_cast<std::uint32_t>(word); }
constexpr std::size_t kKeptMax = 4;
}  // namespace

const std::byte* Side::receive_of(const std::int32_t* words) {
  const Receives& receives = session(u32(words[ev::session])).receives();
  return receives.memory_of(receives.slot(u32(words[ev::receive_slot]) - 1));
}

std::span<const std::byte> Side::message_of(const std::int32_t* words) {
  const std::int32_t region = words[ev::region];
  const std::byte* base = nullptr;
  std::size_t offset = 0;
  if (region == boundary::kReceiveSlab) {
    base = receive_of(words);
    short_messages += ShortMessages::has(u32(words[ev::receive_slot]) - 1) ? 1 : 0;
    offset = u32(words[ev::offset]) + u32(words[ev::metadata_bytes]);
  } else if (region == boundary::kReassembledMessage) {
    base = context->reassembled_messages();
    offset = u32(words[ev::offset]);
    ++reassembled_messages;
  } else if (region > 0) {
    base = context->arena().at(u32(region)).data;
  }
  return {base + offset, u32(words[ev::message_bytes])};
}

namespace {
/// Returns the message inside an aligned message of `count` gather entries, which are cut as by
/// make_gather_entries(). Returns an empty message when an entry begins at an offset that is no multiple of
/// 64 bytes, or when the length is wrong.
std::vector<std::byte> message_in(std::span<const std::byte> aligned, std::size_t bytes, std::size_t count,
                                  std::size_t short_bytes = 0) {
  std::vector<std::byte> message;
  if (reinterpret_cast<std::uintptr_t>(aligned.data()) % wire::kAlignment != 0) return message;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = gather_entry_begin(bytes, count, i + 1, short_bytes) -
                               gather_entry_begin(bytes, count, i, short_bytes);
    if (length == 0) continue;
    const std::uint64_t from = wire::aligned_offset(at);
    if (from + length > aligned.size()) return {};
    message.insert(message.end(), aligned.begin() + static_cast<std::ptrdiff_t>(from),
                   aligned.begin() + static_cast<std::ptrdiff_t>(from + length));
    at = from + length;
  }
  return at == aligned.size() ? message : std::vector<std::byte>{};
}

bool is_aligned(const std::int32_t* words) {
  return words[boundary::ev::region] > 0 && words[boundary::ev::aligned] == 1;
}
}  // namespace

void Side::on_event(const std::int32_t* words) {
  const std::uint32_t number = u32(words[ev::session]), call = u32(words[ev::call]),
                      token = u32(words[ev::token]);
  switch (static_cast<EvKind>(words[ev::kind])) {
    case EvKind::request:
      return on_request(words);
    case EvKind::settled:
    case EvKind::failed:
      return on_last_event(words);
    case EvKind::cancelled:
      ++cancelled_events;
      for (auto* queue : {&pending_, &wants_slot_}) {
        std::erase_if(*queue,
                      [&](const Pending& each) { return each.session == number && each.call == call; });
      }
      return;
    case EvKind::sent:
      if (const auto request = tokens_.find(token); request != tokens_.end()) {
        CallRecord& record = ledger.at(request->second);
        if (record.ended() && !record.holds()) ledger.violation("SENT after the last event of its call");
        ++record.sent_events;
        tokens_.erase(request);
      } else if (const auto reply = replies_.find(token); reply != replies_.end()) {
        for (const memory::BlockId block : reply->second.blocks) context->arena().release(block);
        replies_.erase(reply);
      } else {
        // A batch never contains the SENT event of a submission that has not returned yet, so each token must
        // be known here.
        ledger.violation("SENT for an unknown token");
      }
      return;
    case EvKind::session_down:
      if (is_down(number)) ledger.violation("second SESSION_DOWN");
      down_[number] = session(number).error();
      for (const std::uint64_t id : in_flight_[number]) {
        if (id != 0) ledger.violation("SESSION_DOWN before the last event of call " + std::to_string(id));
      }
      return;
    case EvKind::memory_free:
    case EvKind::memory_short:
      return;
    case EvKind::slots_free:
      ++slots_free_events;
      return;
    case EvKind::session_up:
      if (is_up(number) || is_down(number)) ledger.violation("SESSION_UP came twice, or too late");
      up_.insert(number);
      return;
    case EvKind::part_waits:
      return hold_back(number, call);
    case EvKind::released:
      return on_released(words);
    case EvKind::evicted:
    case EvKind::device_gone:
      return;
  }
  ledger.violation("event of an unknown kind");
}

void Side::on_request(const std::int32_t* words) {
  Pending request{u32(words[ev::session]), u32(words[ev::call]), {}};
  auto message = message_of(words);
  std::vector<std::byte> gathered;
  if (u32(words[ev::metadata_bytes]) != sizeof request.descriptor) {
    request.descriptor = {};  // from a scripted peer: only the size is echoed
    request.descriptor.response_bytes = static_cast<std::uint32_t>(message.size());
    request.descriptor.response_gather_entries = 1;
  } else {
    std::memcpy(&request.descriptor, receive_of(words) + u32(words[ev::metadata_offset]),
                sizeof request.descriptor);
    const std::uint64_t id = request.descriptor.id;
    if (!ledger.known(id)) {
      ledger.violation("request that nobody made");
    } else {
      ++ledger.at(id).began;
      if ((words[ev::part] == 1) != ledger.at(id).spec.part) ledger.violation("part flag lost or made up");
      const CallSpec& spec = ledger.at(id).spec;
      if (is_aligned(words)) {
        gathered = message_in(message, spec.request_bytes, spec.request_gather_entries,
                              spec.short_gather_entry_bytes);
        message = gathered;
      } else if (spec.aligned && words[ev::region] > 0) {
        ledger.violation("aligned message that came as something else");
      }
      if (message.size() != request.descriptor.request_bytes || !is_pattern(message, id)) {
        ledger.violation("request " + std::to_string(id) + " arrived with other bytes");
      }
    }
  }
  if (words[ev::region] > 0) context->arena().release(u32(words[ev::region]));
  if (request.descriptor.later != 0) {
    pending_.push_back(request);
  } else {
    respond(request);
  }
}

void Side::on_last_event(const std::int32_t* words) {
  auto& slots = in_flight_[u32(words[ev::session])];
  const std::uint32_t slot = u32(words[ev::call]);
  const std::uint64_t id = slot < slots.size() ? slots[slot] : 0;
  if (id == 0) return ledger.violation("last event of a call that is not in flight");
  CallRecord& call = ledger.at(id);
  ++call.last_events;
  call.kind = static_cast<EvKind>(words[ev::kind]);
  call.processed = static_cast<Processed>(words[ev::processed]);
  if (call.kind == EvKind::failed) call.held = words[ev::pending_release];
  if (call.held == 0) slots[slot] = 0;
  if (call.token > 0 && call.sent_events == 0 && call.held == 0) ledger.violation("last event before SENT");
  if (call.kind == EvKind::failed) {
    call.reason = static_cast<Reason>(words[ev::reason]);
  } else {
    call.status = u32(words[ev::status]);
    auto message = message_of(words);
    std::vector<std::byte> gathered;
    if (is_aligned(words)) {
      gathered = message_in(message, call.spec.response_bytes, call.spec.response_gather_entries);
      message = gathered;
    }
    call.refused_bytes = u32(words[ev::refused_bytes]);
    call.answer_bytes = message.size();
    // Refusals that the session itself sends have a text and no metadata.
    const bool ours = words[ev::metadata_bytes] != 0;
    if (ours && (message.size() != call.spec.response_bytes || !is_pattern(message, answer_of(id)))) {
      ledger.violation("answer " + std::to_string(id) + " arrived with other bytes");
    }
    if (const std::int32_t region = words[ev::region]; region > 0) {
      call.answer_block = u32(region);
      if (u32(region) == call.given_block) {
        context->arena().release(u32(region));  // releases the event's reference; our own reference stays
      } else {
        const memory::Block& block = context->arena().at(u32(region));
        ledger.watch({block.data, block.capacity});
        kept_.push_back(u32(region));
      }
    }
  }
  reclaim(id, true, (call.held & boundary::pending_reply_buffer) == 0);
}

void Side::on_released(const std::int32_t* words) {
  auto& slots = in_flight_[u32(words[ev::session])];
  const std::uint32_t slot = u32(words[ev::call]);
  const std::uint64_t id = slot < slots.size() ? slots[slot] : 0;
  if (id == 0 || !ledger.at(id).holds()) return ledger.violation("RELEASED for a call that is not held");
  slots[slot] = 0;
  CallRecord& call = ledger.at(id);
  ++call.released_events;
  if (call.token > 0 && call.sent_events == 0) ledger.violation("RELEASED before SENT");
  if ((call.held & boundary::pending_reply_buffer) != 0) reclaim(id, false, true);
}

/// From now on the application may use this memory of a call again, and it does.
void Side::reclaim(std::uint64_t id, bool request, bool reply_buffer) {
  const CallRecord& call = ledger.at(id);
  const bool given = call.given_block != memory::kNoBlock;
  const std::byte* const given_data = given ? context->arena().at(call.given_block).data : nullptr;
  for (const Watched& memory : call.memory) {
    if (memory.data == given_data ? reply_buffer : request) ledger.watch(memory);
  }
  if (const auto found = call_blocks_.find(id); found != call_blocks_.end()) {
    auto& blocks = found->second;
    std::erase_if(blocks, [&](memory::BlockId block) {
      const bool back = given && block == call.given_block ? reply_buffer : request;
      if (back) kept_.push_back(block);
      return back;
    });
    if (blocks.empty()) call_blocks_.erase(found);
  }
  while (release_answers && kept_.size() > kKeptMax) {
    ledger.unwatch(context->arena().at(kept_.front()).data);
    context->arena().release(kept_.front());
    kept_.pop_front();
  }
}

}  // namespace rdma_rpc::session::test
