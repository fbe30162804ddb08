// See bulk_memory.h.
#include "session/link/bulk_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rdma_rpc::session {

using boundary::Reason;

namespace {
constexpr auto kGivenBytes = [](const GivenGatherEntry& given) { return given.bytes; };
constexpr auto kGivenData = [](const GivenGatherEntry& given) { return given.data; };

/// The arena block for those parts of a message that are copied from the encode scratch buffer.
struct Text {
  memory::BlockId block = memory::kNoBlock;
  std::size_t bytes = 0;
  std::size_t refused = 0;  ///< bytes that the arena has refused
};

/// Copies a gather entry from the encode scratch buffer. The first copy of a message allocates a block for
/// all of its copies. Returns false when the arena has no room.
bool collect_text(Link& link, const BulkSubmission& submission, const GivenGatherEntry& given, Text& text,
                  std::vector<GatherEntry>& gather_entries) {
  Shared& shared = link.shared();
  if (text.block == memory::kNoBlock) {
    std::size_t bytes = 0;
    for (const GivenGatherEntry& each : submission.gather_entries) bytes += each.text ? each.bytes : 0;
    text.block = shared.arena.alloc(bytes, submission.use, link.owner());
    if (text.block == memory::kNoBlock) {
      text.refused = bytes;
      return false;
    }
  } else {
    shared.arena.retain(text.block);
  }
  const memory::Block& block = shared.arena.at(text.block);
  std::memcpy(block.data + text.bytes, given.data, given.bytes);
  gather_entries.push_back({reinterpret_cast<std::uint64_t>(block.data + text.bytes),
                            static_cast<std::uint32_t>(given.bytes), block.region, text.block});
  text.bytes += given.bytes;
  return true;
}

/// Copies the message to an arena block. Returns false when the arena has no room.
bool stage(Link& link, const BulkSubmission& submission, std::uint64_t extent,
           std::vector<GatherEntry>& gather_entries) {
  Shared& shared = link.shared();
  if (extent == 0) return true;
  const auto bytes = static_cast<std::uint32_t>(link.on_wire(extent));
  const memory::BlockId block = shared.arena.alloc(bytes, submission.use, link.owner());
  if (block == memory::kNoBlock) {
    shared.short_bytes = static_cast<std::int32_t>(bytes);
    return false;
  }
  const memory::Block& memory = shared.arena.at(block);
  lay_out(memory.data, submission.gather_entries, submission.aligned, kGivenBytes, kGivenData);
  gather_entries.push_back(
      {reinterpret_cast<std::uint64_t>(memory.data), bytes, memory.region, block, 0, false});
  if (link.sealing() != nullptr)
    gather_entries.back().sealed_number =
        link.sealing()->seal_bulk(memory.data, static_cast<std::uint32_t>(extent));
  return true;
}

}  // namespace

bool collect_gather_entries(Link& link, const BulkSubmission& submission,
                            std::vector<GatherEntry>& gather_entries, Reason& reason) {
  Shared& shared = link.shared();
  // In staging mode the message is copied to staging memory when its turn comes; until then its gather
  // entries only need to stay allocated.
  const bool staged = link.options().client && link.staging() != nullptr;
  const std::uint64_t total = extent_of(submission.gather_entries, submission.aligned, kGivenBytes);
  // The list of a request's gather entries shares the slot with the metadata; there is always room for one
  // entry (send_slots.h).
  const std::size_t spare = shared.slot_bytes - std::min(submission.metadata_bytes, shared.slot_bytes);
  const std::size_t listed =
      link.options().client ? 1 + spare / sizeof(wire::GatherEntry) : kGatherEntriesMax;
  bool copies = false;
  bool copy = submission.gather_entries.size() > std::min<std::size_t>(kGatherEntriesMax, listed) && !staged;
  for (const GivenGatherEntry& given : submission.gather_entries) {
    // The buffer has been detached since it was encoded. The peer is told the length that the value had when
    // it was encoded. (With the V8 of Node 20, compiled code that has seen a resizable view gets the old
    // length of a detached one.)
    if ((given.key != 0 || given.copied) && given.bytes == 0 && given.buffer_data == nullptr) {
      reason = Reason::detached;
      return false;
    }
    // If the fabric cannot expose this memory, registering it would only fail at the peer. A copy in the
    // arena always works.
    if (given.key != 0 && link.options().client && !staged && !link.capabilities().exposes_any_memory)
      copy = true;
    if (given.presence != nullptr && link.capabilities().reads_memory_late) copy = true;
    // This entry must be copied now. The session cannot find out later whether the entry's memory still
    // exists, so the entry cannot wait for staging memory.
    if (given.copied) copies = true;
  }
  // A message that can be sent in place leaves the second half of the arena to messages that must be copied.
  const bool must_copy = copy || link.sealing() != nullptr || link.capabilities().reads_memory_late;
  if (copies && !must_copy && shared.arena.counters().bytes_leased + total > shared.arena.largest() / 2) {
    shared.short_bytes = static_cast<std::int32_t>(total);
    shared.refusal.clear();
    reason = Reason::no_memory;
    return false;
  }
  // A message is sealed in a copy, which is exposed only after it has been encrypted: the peer must never
  // reach plain text.
  if (copies || link.sealing() != nullptr) copy = true;
  const std::uint64_t allowed = submission.aligned
                                    ? wire::aligned_bytes_max(link.options().peer_max_message_bytes)
                                    : link.options().peer_max_message_bytes;
  if (total > allowed || link.on_wire(total) > UINT32_MAX) {
    reason = Reason::too_large;
    return false;
  }
  if (staged && link.on_wire(total) > link.staging()->largest()) {
    reason = Reason::staging;
    return false;
  }
  // Starts all slow registrations at once; JS submits the message again when they are finished.
  bool registering = false;
  for (const GivenGatherEntry& given : submission.gather_entries) {
    if (copy || staged || given.key == 0 || given.bytes == 0) continue;
    registering |= shared.mr_cache.awaits(given.key, given.buffer_data, given.buffer_bytes, shared.now_ns,
                                          given.presence);
  }
  if (registering) {
    shared.refusal.clear();
    reason = Reason::registering;
    return false;
  }
  std::string why;
  Text text;
  gather_entries.reserve(submission.gather_entries.size());
  for (const GivenGatherEntry& given : submission.gather_entries) {
    if (copy) break;
    if (given.bytes == 0) continue;
    if (given.text) {
      copy = !collect_text(link, submission, given, text, gather_entries);
      continue;
    }
    GatherEntry gather_entry{reinterpret_cast<std::uint64_t>(given.data),
                             static_cast<std::uint32_t>(given.bytes),
                             nullptr,
                             memory::kNoBlock,
                             0,
                             given.lent,
                             given.presence};
    gather_entry.block = shared.arena.find(given.data, given.bytes);
    if (gather_entry.block != memory::kNoBlock) {
      shared.arena.retain(gather_entry.block);
      gather_entry.region = shared.arena.at(gather_entry.block).region;
    } else if (given.key != 0 && !staged) {
      gather_entry.region = shared.mr_cache.acquire(given.key, given.buffer_data, given.buffer_bytes,
                                                    shared.now_ns, &why, given.presence);
      gather_entry.mr_key = gather_entry.region != nullptr ? given.key : 0;
    }
    if (gather_entry.region == nullptr && !staged) {
      copy = true;  // the registration budget is used up, but the arena may still have room
      break;
    }
    gather_entries.push_back(gather_entry);
  }
  if (!copy) return true;
  release_gather_entries(link, gather_entries);
  if (stage(link, submission, total, gather_entries)) return true;
  reason = Reason::no_memory;
  // The copy was only a fallback. The message could be sent in place if the arena had room for the parts from
  // the scratch buffer.
  if (text.refused != 0) shared.short_bytes = static_cast<std::int32_t>(text.refused);
  shared.refusal = shared.arena.refusal().empty() ? why : shared.arena.refusal();
  return false;
}

bool copy_gather_entries(Link& link, const BulkSubmission& submission,
                         std::vector<GatherEntry>& gather_entries) {
  Shared& shared = link.shared();
  const std::uint64_t extent = extent_of(submission.gather_entries, submission.aligned, kGivenBytes);
  if (extent > shared.arena.largest()) return true;
  std::vector<GatherEntry> copy;
  if (!stage(link, submission, extent, copy)) return false;
  release_gather_entries(link, gather_entries);
  gather_entries = std::move(copy);
  return true;
}

void release_gather_entries(Link& link, std::vector<GatherEntry>& gather_entries) {
  Shared& shared = link.shared();
  for (const GatherEntry& gather_entry : gather_entries) {
    if (gather_entry.block != memory::kNoBlock) shared.arena.release(gather_entry.block);
    if (gather_entry.mr_key != 0) shared.mr_cache.unpin(gather_entry.mr_key, shared.now_ns);
  }
  gather_entries.clear();
}

}  // namespace rdma_rpc::session
