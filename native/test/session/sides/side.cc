// See side.h.
#include "session/sides/side.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace rdma_rpc::session::test {

namespace ctl = boundary::ctl;
namespace ev = boundary::ev;
namespace sub = boundary::sub;
using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
using boundary::SubOp;

namespace {
std::uint32_t u32(std::int32_t word) { return static_cast<std::uint32_t>(word); }
std::int32_t i32(std::size_t value) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(value)); }
}  // namespace

Side::Side(Ledger& all, std::shared_ptr<fabric::Device> on, const ContextOptions& options)
    : ledger(all), device(std::move(on)) {
  std::string error;
  context = Context::open(device, options, &error);
  EXPECT_NE(context, nullptr) << error;
}

Side::~Side() = default;

std::uint32_t Side::open(const SessionOptions& options) {
  std::string error;
  const std::int64_t number = context->create_session(options, &error);
  EXPECT_GE(number, 0) << error;
  if (number < 0) return 0;
  in_flight_[static_cast<std::uint32_t>(number)].resize(std::max(options.inflight_max, options.call_slots));
  return static_cast<std::uint32_t>(number);
}

std::int32_t Side::take_slot() {
  std::int32_t& top = context->control()[ctl::free_slots];
  return top == 0 ? -1 : context->free_slots()[--top];
}

void Side::stage(SubOp op, std::uint32_t session, std::uint32_t call, std::uint32_t method,
                 std::uint32_t slot, std::size_t metadata_bytes, std::size_t message_bytes,
                 std::uint32_t timeout_us) {
  std::int32_t& staged = context->control()[ctl::staged];
  std::int32_t* words = context->submissions() + staged * sub::words;
  words[sub::op] = static_cast<std::int32_t>(op);
  words[sub::session] = i32(session);
  words[sub::call] = i32(call);
  words[sub::method] = i32(method);
  words[sub::slot] = i32(slot);
  words[sub::metadata_bytes] = i32(metadata_bytes);
  words[sub::message_bytes] = i32(message_bytes);
  words[sub::timeout_us] = i32(timeout_us);
  if (++staged == static_cast<std::int32_t>(kSubmissionsMax)) context->flush();
}

/// Stages the message in segments. Returns false when the session does not send segments, or cannot send them
/// now.
bool Side::stage_long(SubOp op, std::uint32_t session, std::uint32_t call, std::uint32_t method,
                      std::span<const std::byte> metadata, std::size_t message_bytes, std::uint64_t pattern,
                      std::uint32_t timeout_us) {
  Session* to = context->find(session);
  if (to == nullptr || metadata.size() + message_bytes > to->segmented_bytes()) return false;
  const std::int32_t slot =
      op == SubOp::response ? to->take_long_slot(call) : to->take_long_slot(std::nullopt);
  if (slot < 0) return false;
  std::byte* payload = context->slots().payload(static_cast<std::uint32_t>(slot));
  std::copy(metadata.begin(), metadata.end(), payload);
  fill_pattern({payload + metadata.size(), message_bytes}, pattern);
  stage(op, session, call, method, static_cast<std::uint32_t>(slot), metadata.size(), message_bytes,
        timeout_us);
  return true;
}

std::vector<GivenGatherEntry> Side::make_gather_entries(std::size_t bytes, std::size_t count,
                                                        std::size_t short_bytes, bool in_arena,
                                                        std::size_t beyond_page, std::uint64_t seed,
                                                        std::vector<memory::BlockId>& blocks,
                                                        std::vector<Watched>* memory,
                                                        memory::OwnerId answer_of) {
  const memory::Use use = answer_of != memory::kNobody ? memory::Use::response : memory::Use::application;
  std::vector<std::byte> message(bytes);
  fill_pattern(message, seed);
  std::vector<GivenGatherEntry> gather_entries;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = gather_entry_begin(bytes, count, i, short_bytes);
    const std::size_t length = gather_entry_begin(bytes, count, i + 1, short_bytes) - from;
    GivenGatherEntry gather_entry;
    gather_entry.bytes = length;
    const memory::BlockId block =
        in_arena ? context->arena().alloc(length, use, answer_of) : memory::kNoBlock;
    if (block != memory::kNoBlock) {
      blocks.push_back(block);
      gather_entry.data = context->arena().at(block).data;
    } else {
      // Guard bytes around the gather entry are part of the buffer, but not of the message.
      const std::size_t spare = beyond_page == 0 ? 32 : 32 + fabric::kPageBytes;
      Buffer& buffer = buffers_.emplace_back(std::vector<std::byte>(length + spare), next_key_++);
      gather_entry.data = buffer.bytes.data() + 16;
      const auto ends_at = reinterpret_cast<std::uintptr_t>(gather_entry.data) + length;
      if (beyond_page != 0) gather_entry.data += (beyond_page - ends_at) % fabric::kPageBytes;
      gather_entry.key = buffer.key;
      gather_entry.buffer_data = buffer.bytes.data();
      gather_entry.buffer_bytes = buffer.bytes.size();
    }
    std::copy_n(message.begin() + static_cast<std::ptrdiff_t>(from), length, gather_entry.data);
    if (memory != nullptr) memory->push_back({gather_entry.data, length});
    gather_entries.push_back(gather_entry);
  }
  return gather_entries;
}

/// Moves every second gather entry to the scratch buffer, while there is room.
void Side::move_to_scratch(std::vector<GivenGatherEntry>& gather_entries) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < gather_entries.size(); i += 2) {
    GivenGatherEntry& gather_entry = gather_entries[i];
    if (gather_entry.bytes > scratch_.size() - at) continue;
    std::copy_n(gather_entry.data, gather_entry.bytes, scratch_.data() + at);
    gather_entry = {.data = scratch_.data() + at, .bytes = gather_entry.bytes, .lent = false, .text = true};
    at += gather_entry.bytes;
  }
}

std::uint64_t Side::start(std::uint32_t session, const CallSpec& spec) {
  auto& slots = in_flight_[session];
  const auto free = std::find(slots.begin(), slots.end(), 0u);
  if (free == slots.end()) return 0;
  const std::int32_t slot = take_slot();
  if (slot < 0) {
    context->control()[ctl::want_slots] = 1;
    return 0;
  }
  const std::uint64_t id = ledger.add(spec);
  *free = id;
  CallRecord& call = ledger.at(id);
  call.session = session;
  call.slot = static_cast<std::uint32_t>(free - slots.begin());
  const Descriptor descriptor{id,
                              static_cast<std::uint32_t>(spec.request_bytes),
                              static_cast<std::uint32_t>(spec.response_bytes),
                              static_cast<std::uint32_t>(spec.response_gather_entries),
                              spec.status,
                              spec.response_in_arena,
                              spec.response_bulk,
                              spec.answer == Answer::later,
                              spec.beyond_page,
                              spec.aligned,
                              {}};
  std::byte* payload = context->slots().payload(static_cast<std::uint32_t>(slot));
  std::memcpy(payload, &descriptor, sizeof descriptor);
  const std::size_t slot_bytes = context->slots().stride() - kSlotHeadroom - kSlotTail;
  const bool bulk = spec.given_reply_buffer != 0 || sizeof descriptor + spec.request_bytes > slot_bytes;
  if (!bulk) {
    fill_pattern({payload + sizeof descriptor, spec.request_bytes}, id);
    stage(spec.part ? SubOp::part : SubOp::request, session, call.slot, spec.method,
          static_cast<std::uint32_t>(slot), sizeof descriptor, spec.request_bytes, spec.timeout_us);
    return id;
  }
  const auto op = spec.part ? SubOp::part : SubOp::request;
  if (spec.given_reply_buffer == 0 &&
      stage_long(op, session, call.slot, spec.method, std::as_bytes(std::span(&descriptor, 1)),
                 spec.request_bytes, id, spec.timeout_us)) {
    context->slots().release(static_cast<std::uint32_t>(slot));
    return id;
  }
  BulkSubmission submission;
  submission.op = op;
  submission.call = call.slot;
  submission.method = spec.method;
  submission.slot = static_cast<std::uint32_t>(slot);
  submission.metadata_bytes = sizeof descriptor;
  submission.timeout_us = spec.timeout_us;
  auto& blocks = call_blocks_[id];
  submission.gather_entries =
      make_gather_entries(spec.request_bytes, spec.request_gather_entries, spec.short_gather_entry_bytes,
                          spec.request_in_arena, spec.beyond_page, id, blocks, &call.memory);
  if (spec.in_scratch) move_to_scratch(submission.gather_entries);
  if (spec.given_reply_buffer != 0) {
    call.given_block = context->arena().alloc(spec.given_reply_buffer);
    if (call.given_block != memory::kNoBlock) {
      blocks.push_back(call.given_block);
      call.memory.push_back({context->arena().at(call.given_block).data, spec.given_reply_buffer});
    }
    submission.reply_buffer = call.given_block;
    submission.reply_buffer_only = spec.reply_buffer_only;
  }
  submission.aligned = spec.aligned;
  Session* to = context->find(session);
  call.token = to == nullptr ? -static_cast<std::int32_t>(Reason::session_lost)
                             : to->submit_bulk(std::move(submission));
  scratch_.fill(std::byte{0xee});  // the next message is encoded there
  if (call.token > 0) {
    tokens_[u32(call.token)] = id;
    return id;
  }
  // The submission was refused, so the slot and the call still belong to this side.
  context->free_slots()[context->control()[ctl::free_slots]++] = slot;
  *free = 0;
  call.last_events = 1;
  call.kind = EvKind::failed;
  call.reason = static_cast<Reason>(-call.token);
  for (const Watched& memory : call.memory) ledger.watch(memory);
  for (const memory::BlockId block : blocks) kept_.push_back(block);
  call_blocks_.erase(id);
  return id;
}

void Side::cancel(std::uint64_t id, Reason reason) {
  const CallRecord& call = ledger.at(id);
  Session* session = context->find(call.session);
  if (session == nullptr || call.ended()) return;
  context->flush();
  session->cancel(call.slot, reason);
  context->flush();
}

bool Side::answer(std::size_t index) {
  if (index >= pending_.size()) return false;
  const Pending request = pending_[index];
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
  return respond(request);
}

bool Side::respond(const Pending& request) {
  const std::int32_t slot = take_slot();
  if (slot < 0) {
    context->control()[ctl::want_slots] = 1;
    wants_slot_.push_back(request);
    return false;
  }
  const Descriptor& what = request.descriptor;
  std::byte* payload = context->slots().payload(static_cast<std::uint32_t>(slot));
  const std::size_t slot_bytes = context->slots().stride() - kSlotHeadroom - kSlotTail;
  const auto refuse = [&](std::uint32_t status) {
    stage(SubOp::response, request.session, request.call, status, static_cast<std::uint32_t>(slot), 0, 0, 0);
  };
  if (what.response_bulk == 0 && what.response_bytes + sizeof what.id <= slot_bytes) {
    std::memcpy(payload, &what.id, sizeof what.id);
    fill_pattern({payload + sizeof what.id, what.response_bytes}, answer_of(what.id));
    stage(SubOp::response, request.session, request.call, what.status, static_cast<std::uint32_t>(slot),
          sizeof what.id, what.response_bytes, 0);
    return true;
  }
  if (what.response_bulk == 0 && what.status == 0 &&
      stage_long(SubOp::response, request.session, request.call, what.status,
                 std::as_bytes(std::span(&what.id, 1)), what.response_bytes, answer_of(what.id), 0)) {
    context->slots().release(static_cast<std::uint32_t>(slot));
    return true;
  }
  Session* to = context->find(request.session);
  if (to == nullptr) {
    refuse(14);
    return true;
  }
  BulkSubmission submission;
  submission.op = SubOp::response;
  submission.call = request.call;
  submission.method = what.status;
  submission.slot = static_cast<std::uint32_t>(slot);
  submission.metadata_bytes = sizeof what.id;
  std::memcpy(payload, &what.id, sizeof what.id);
  Reply reply;
  submission.gather_entries = make_gather_entries(
      what.response_bytes, what.response_gather_entries, 0, what.response_in_arena != 0, what.beyond_page,
      answer_of(what.id), reply.blocks, nullptr, owned_answers ? to->owner() : memory::kNobody);
  submission.aligned = what.aligned != 0;
  const std::int32_t token = to->submit_bulk(std::move(submission));
  if (token > 0) {
    replies_[u32(token)] = std::move(reply);
  } else {
    for (const memory::BlockId block : reply.blocks) context->arena().release(block);
    refuse(8);
  }
  return true;
}

bool Side::turn(std::uint64_t now_ns) {
  for (std::size_t i = wants_slot_.size(); i > 0 && free_slots() != 0; --i) {
    const Pending request = wants_slot_.front();
    wants_slot_.pop_front();
    respond(request);
  }
  const bool staged = context->control()[ctl::staged] != 0;
  const std::uint32_t count = context->progress(now_ns);
  if (count != 0) {
    context->begin_callback();
    for (std::uint32_t i = 0; i < count; ++i) on_event(context->events() + i * ev::words);
  }
  const bool more = context->finish_turn();
  if (const std::string forgotten = context->forgotten(); !forgotten.empty()) ledger.violation(forgotten);
  if (const std::string overdrawn = context->overdrawn(); !overdrawn.empty()) ledger.violation(overdrawn);
  return more || staged || count != 0 || !context->cq().arm();
}

void Side::forget() {
  for (auto& [number, slots] : in_flight_) {
    for (const std::uint64_t id : slots) {
      if (id == 0) continue;
      ledger.at(id).last_events = 1;
      ledger.at(id).processed = Processed::maybe;
      ledger.at(id).token = 0;
    }
  }
  call_blocks_.clear();
  replies_.clear();
}

void Side::release_blocks() {
  for (const memory::BlockId block : kept_) {
    ledger.unwatch(context->arena().at(block).data);
    context->arena().release(block);
  }
  kept_.clear();
  if (!call_blocks_.empty()) ledger.violation("blocks of calls that have not ended");
  if (!replies_.empty()) ledger.violation("responses without a SENT event");
}

}  // namespace rdma_rpc::session::test
