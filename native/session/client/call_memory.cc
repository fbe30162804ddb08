// See call_memory.h.
#include "session/client/call_memory.h"

#include <algorithm>
#include <bit>

#include "session/link/bulk_memory.h"

namespace rdma_rpc::session {

std::optional<std::uint32_t> CallMemory::expose(ClientBulk& bulk, const fabric::MemoryRegion& region,
                                                std::uint64_t addr, std::uint32_t length,
                                                std::uint32_t access) {
  if (shared_.exposure == Exposure::window) {
    auto window = shared_.windows.take();
    if (window == nullptr) return std::nullopt;
    link_.send().bind(*window, region, addr, length, access);
    bulk.windows.push_back(std::move(window));
  }
  bulk.exposed = true;
  const std::uint32_t key =
      shared_.exposure == Exposure::window ? bulk.windows.back()->rkey() : region.rkey();
  link_.recorder().grant(access, key, length);
  return key;
}

std::uint32_t CallMemory::inline_entries(const ClientBulk& bulk) const {
  static_assert(kGatherEntriesMax <= 32);
  if (!link_.options().peer_takes_inlined || bulk.gather_entries.size() < 2) return 0;
  std::uint32_t inlined = 0;
  std::size_t bytes = sizeof(wire::GatherListHead) + bulk.gather_entries.size() * sizeof(wire::GatherEntry) +
                      bulk.metadata_bytes;
  for (std::size_t i = 0; i < bulk.gather_entries.size(); ++i) {
    const std::size_t length = bulk.gather_entries[i].length;
    if (bulk.gather_entries[i].lent || length > kInlinedBytes || bytes + length > link_.frame_room())
      continue;
    inlined |= 1u << i;
    bytes += length;
  }
  if (static_cast<std::size_t>(std::popcount(inlined)) == bulk.gather_entries.size()) inlined &= inlined - 1;
  return inlined;
}

bool CallMemory::stage_request(ClientBulk& bulk) {
  if (staging() == nullptr || bulk.gather_entries.empty() || bulk.staged_request != memory::kNoBlock)
    return true;
  constexpr auto kBytes = [](const GatherEntry& gather_entry) { return gather_entry.length; };
  const auto total = static_cast<std::uint32_t>(extent_of(bulk.gather_entries, bulk.aligned, kBytes));
  bulk.staged_request = staging()->take(total);
  if (bulk.staged_request == memory::kNoBlock) return false;
  const memory::Block& block = staging()->at(bulk.staged_request);
  lay_out(block.data, bulk.gather_entries, bulk.aligned, kBytes, [](const GatherEntry& gather_entry) {
    return reinterpret_cast<const std::byte*>(gather_entry.addr);
  });
  release_gather_entries(link_, bulk.gather_entries);
  bulk.gather_entries.push_back(
      {reinterpret_cast<std::uint64_t>(block.data), total, block.region, memory::kNoBlock, 0, false});
  return true;
}

void CallMemory::release_staged(ClientBulk& bulk) {
  for (memory::BlockId* block : {&bulk.staged_request, &bulk.staged_reply_buffer}) {
    if (*block != memory::kNoBlock) staging()->release(*block);
    *block = memory::kNoBlock;
  }
}

void CallMemory::choose_reply_buffer(ClientCall& call, memory::BlockId given) {
  ClientBulk& bulk = *call.bulk;
  if (given != memory::kNoBlock && shared_.arena.live(given)) {
    shared_.arena.retain(given);
    bulk.reply_buffer = given;
    bulk.reply_buffer_given = true;
  } else if (const std::uint32_t expected = shared_.predictor.expected(call.method, bulk.request_size);
             !link_.fits_frames(expected) &&
             expected <= link_.on_wire(wire::aligned_bytes_max(link_.options().max_message_bytes)) &&
             shared_.arena.counters().bytes_leased + expected <= shared_.arena.largest() / 2) {
    // The size is only a guess, so the memory may be refused here. If every call of a method could take 64
    // MiB because it expects such a response, no memory would be left for other needs, such as copies of
    // requests. When a call gets no reply buffer here, the server asks for one later.
    bulk.reply_buffer = shared_.arena.alloc(
        expected, call.part ? memory::Use::ahead : memory::Use::reply_buffer, link_.owner());
    if (bulk.reply_buffer != memory::kNoBlock) ++shared_.stats.reply_buffers_predicted;
  }
}

std::size_t CallMemory::request_bytes(const ClientBulk& bulk) const {
  std::size_t bytes = 0;
  for (auto entry = bulk.gather_entries.begin(); entry != bulk.gather_entries.end(); ++entry) {
    // A reply buffer that was too small is kept among the gather entries, with length 0.
    if (entry->block == memory::kNoBlock || entry->length == 0) continue;
    const auto same = [entry](const GatherEntry& other) { return other.block == entry->block; };
    if (std::none_of(bulk.gather_entries.begin(), entry, same))
      bytes += shared_.arena.at(entry->block).capacity;
  }
  return bytes;
}

std::optional<wire::ReplyBuffer> CallMemory::expose_reply_buffer(ClientBulk& bulk) {
  const memory::Block* block = &shared_.arena.at(bulk.reply_buffer);
  auto capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      {block->capacity, link_.on_wire(wire::aligned_bytes_max(link_.options().max_message_bytes)),
       UINT32_MAX}));
  if (staging() != nullptr) {
    if (bulk.reply_buffer_asked != 0) {
      capacity = bulk.reply_buffer_asked;
    } else if (capacity > staging()->largest() / kStagingShare) {
      return std::nullopt;
    }
    bulk.staged_reply_buffer = staging()->take(capacity);
    if (bulk.staged_reply_buffer == memory::kNoBlock) return std::nullopt;
    block = &staging()->at(bulk.staged_reply_buffer);
  }
  const auto addr = reinterpret_cast<std::uint64_t>(block->data);
  const auto key = expose(bulk, *block->region, addr, capacity, fabric::access_remote_write);
  if (!key) return std::nullopt;
  bulk.reply_buffer_capacity = capacity;
  if (bulk.reply_buffer_given && staging() == nullptr) bulk.lends_reply_buffer = true;
  return wire::ReplyBuffer{addr, capacity, *key};
}

}  // namespace rdma_rpc::session
