// See bulk_requests.h.
#include "session/client/bulk_requests.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace rdma_rpc::session {

using boundary::Event;
using boundary::Processed;
using boundary::Reason;

void BulkRequests::send(std::uint32_t slot) {
  calls_[slot].bulk->deferred = true;
  deferred_.push_back(slot);
  if (deferred_.size() == 1) start_deferred();
}

void BulkRequests::start_deferred() {
  // Reply buffers come first, because the calls that get them return staging memory when they end.
  reply_buffers_.start_deferred();
  // The request is removed first, so that a request that breaks the session is not found here when the
  // session ends.
  while (!deferred_.empty()) {
    const std::uint32_t slot = deferred_.front();
    deferred_.erase(deferred_.begin());
    if (start(slot)) continue;
    deferred_.insert(deferred_.begin(), slot);
    return;
  }
}

void BulkRequests::remove(std::uint32_t slot) {
  deferred_.erase(std::find(deferred_.begin(), deferred_.end(), slot));
  shared_.slots.release(calls_[slot].bulk->slot);
}

void BulkRequests::end_unsent() {
  for (const std::uint32_t slot : std::exchange(deferred_, {})) {
    calls_[slot].unsent = true;
    shared_.slots.release(calls_[slot].bulk->slot);
  }
}

bool BulkRequests::start(std::uint32_t slot) {
  ClientCall& call = calls_[slot];
  ClientBulk& bulk = *call.bulk;
  bulk.deferred = true;
  const auto end_unsent = [&](Reason reason) {
    shared_.slots.release(bulk.slot);
    bulk.deferred = false;
    revocation_.end(slot, Event::failed(link_.number(), slot, reason, Processed::no));
    return true;
  };
  if (any_memory_gone(bulk.gather_entries)) return end_unsent(Reason::detached);
  if (!memory_.stage_request(bulk)) {
    if (!link_.staging()->empty()) return false;
    shared_.refusal = link_.staging()->refusal();
    return end_unsent(Reason::registration);
  }
  const std::uint32_t inlined = memory_.inline_entries(bulk);
  const auto exposed = static_cast<std::uint32_t>(bulk.gather_entries.size()) -
                       static_cast<std::uint32_t>(std::popcount(inlined));
  if (!link_.send().can_bind(exposed + 1)) return false;
  wire::Header header = wire::Header::of(wire::FrameType::request, wire::call_word(slot, call.generation),
                                         call.method, call.part ? wire::part : 0, bulk.timeout_us);
  wire::GatherEntry wire_gather_entries[kGatherEntriesMax];
  wire::GatherListHead head{0, static_cast<std::uint32_t>(bulk.gather_entries.size())};
  for (std::uint32_t i = 0; i < head.count; ++i) {
    const GatherEntry& gather_entry = bulk.gather_entries[i];
    head.total += gather_entry.length;
    if ((inlined >> i & 1) != 0) {
      wire_gather_entries[i] = {0, gather_entry.length, 0};
      continue;
    }
    const auto key = memory_.expose(bulk, *gather_entry.region, gather_entry.addr, gather_entry.length,
                                    fabric::access_remote_read);
    // The device has run out of windows half way. The windows that are already bound must be invalidated
    // before the call may end.
    if (!key) {
      shared_.refusal = "the device has no memory window left";
      return end_unsent(Reason::registration);
    }
    wire_gather_entries[i] = {gather_entry.addr, gather_entry.length, *key};
    if (gather_entry.lent) bulk.lends_request = true;
  }
  bulk.deferred = false;
  std::optional<wire::ReplyBuffer> reply_buffer;
  if (bulk.reply_buffer != memory::kNoBlock) reply_buffer = memory_.expose_reply_buffer(bulk);
  if (bulk.exposed && shared_.exposure != Exposure::window) header.flags |= wire::lasting;
  std::uint32_t payload_bytes = bulk.metadata_bytes + bulk.message_bytes;
  if (head.count != 0) {
    // The gather entries do not fit the headroom of a slot, so they go to the start of the payload, and the
    // metadata moves behind them.
    header.flags |= wire::has_gather_list;
    ++shared_.stats.bulk_requests;
    if (bulk.aligned) header.flags |= wire::aligned;
    std::byte* payload = shared_.slots.payload(bulk.slot);
    const std::uint32_t gather_entries_bytes =
        static_cast<std::uint32_t>(sizeof head + head.count * sizeof(wire::GatherEntry));
    std::memmove(payload + gather_entries_bytes, payload, bulk.metadata_bytes);
    std::memcpy(payload, &head, sizeof head);
    std::memcpy(payload + sizeof head, wire_gather_entries, head.count * sizeof(wire::GatherEntry));
    payload_bytes = gather_entries_bytes + bulk.metadata_bytes;
    for (std::uint32_t i = 0; i < head.count; ++i) {
      if ((inlined >> i & 1) == 0) continue;
      const GatherEntry& gather_entry = bulk.gather_entries[i];
      std::memcpy(payload + payload_bytes, reinterpret_cast<const std::byte*>(gather_entry.addr),
                  gather_entry.length);
      payload_bytes += gather_entry.length;
    }
    payload_bytes += link_.add_number(bulk.slot, payload_bytes, bulk.number);
  }
  link_.send_message(bulk.slot, header, reply_buffer ? &*reply_buffer : nullptr, bulk.metadata_bytes,
                     payload_bytes, 0, {});
  return true;
}

}  // namespace rdma_rpc::session
