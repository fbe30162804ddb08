// This file has the size classes, chunks and free lists of the arena. Only grow() and the functions that it
// calls allocate memory or make system calls; alloc() of a free block, retain(), release(), at() and find()
// do not.
#include "memory/arena.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <utility>

#include "memory/access.h"

namespace rdma_rpc::memory {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSmallMax = std::size_t{1} << 20;

// A block number consists of 11 bits of generation and 20 bits of slot, so that the number stays positive in
// the int32 words of events. 2^20 slots are 4 GiB of the smallest blocks.
constexpr std::uint32_t kSlotBits = 20;
constexpr std::uint32_t kSlotMask = (1u << kSlotBits) - 1;
constexpr std::uint32_t kGenerationMask = (1u << 11) - 1;

std::size_t round_down(std::size_t bytes, std::size_t step) { return bytes - bytes % step; }

std::size_t log2_floor(std::size_t value) { return static_cast<std::size_t>(std::bit_width(value)) - 1; }

}  // namespace

Arena::Arena(fabric::Device& device, ArenaOptions options)
    : device_(&device), options_(options), slots_(1), owners_(1) {
  options_.budget_bytes = round_down(options_.budget_bytes, kPageBytes);
  options_.chunk_bytes = std::max(round_down(options_.chunk_bytes, kPageBytes), kPageBytes);
}

Arena::~Arena() = default;

std::size_t Arena::class_of(std::size_t bytes) {
  if (bytes <= kPageBytes) return 0;
  const std::size_t power = log2_floor(bytes - 1);  // 2^power < bytes ≤ 2^(power + 1)
  if (bytes <= kSmallMax) return power + 1 - log2_floor(kPageBytes);
  const std::size_t quarter = (bytes - 1 - (std::size_t{1} << power)) >> (power - 2);
  return kSmallClasses + 4 * (power - log2_floor(kSmallMax)) + quarter;
}

// The class that contains the budget ends at the budget, so that alloc(largest()) can succeed.
std::size_t Arena::class_bytes(std::size_t size_class) const {
  if (size_class < kSmallClasses) return std::min(kPageBytes << size_class, options_.budget_bytes);
  const std::size_t large = size_class - kSmallClasses;
  return std::min((kSmallMax >> 2) * (5 + large % 4) << (large / 4), options_.budget_bytes);
}

BlockId Arena::alloc(std::size_t bytes, Use use, OwnerId owner) {
  refusal_.clear();
  if (device_ != nullptr && bytes <= options_.budget_bytes && options_.budget_bytes > 0 &&
      within_share(bytes, use) && !beyond_share(bytes, use, owner)) {
    const std::size_t wanted = class_of(bytes);
    if (free_[wanted] != 0 || grow(wanted)) return lease(wanted, use, owner);
    // The budget has no room for another chunk. However, a larger class may have a free block in a chunk that
    // is otherwise in use.
    for (std::size_t larger = wanted + 1; larger < kClasses; ++larger) {
      if (free_[larger] != 0) return lease(larger, use, owner);
    }
  }
  ++counters_.refused;
  const bool may_wait = use >= Use::fetch && use <= Use::reply_buffer;
  if (may_wait && !beyond_own_limit(bytes, use, owner))
    owners_[owner].refused_at = ++counters_.refused_for_peers;
  return kNoBlock;
}

bool Arena::within_share(std::size_t bytes, Use use) const {
  if (use >= Use::reply_buffer) return true;
  const auto index = static_cast<std::size_t>(use);
  if (use >= Use::request && held_[index] == 0) return true;
  std::size_t held = bytes;
  for (std::size_t i = 0; i <= index; ++i) held += held_[i];
  return held <= options_.budget_bytes / 8 * kShareOfUse[index];
}

bool Arena::refused_others(OwnerId owner, std::uint64_t since) const {
  for (OwnerId other = 0; other < owners_.size(); ++other)
    if (other != owner && owners_[other].refused_at > since) return true;
  return false;
}

OwnerId Arena::add_owner(std::size_t own_max) {
  OwnerId owner = 1;
  const auto taken = [](const Owner& each) {
    return each.present ||
           std::any_of(each.held.begin(), each.held.end(), [](auto bytes) { return bytes != 0; });
  };
  while (owner < owners_.size() && taken(owners_[owner])) ++owner;
  if (owner == owners_.size()) owners_.emplace_back();
  owners_[owner].present = true;
  owners_[owner].own_max = own_max;
  owners_[owner].refused_at = 0;
  ++owners_present_;
  return owner;
}

void Arena::remove_owner(OwnerId owner) {
  owners_[owner].present = false;
  --owners_present_;
}

bool Arena::beyond_own_limit(std::size_t bytes, Use use, OwnerId owner) const {
  const Owner& limited = owners_[owner];
  const auto held = [&limited](Use of) { return limited.held[static_cast<std::size_t>(of)]; };
  const std::size_t most = limited.own_max;
  if (most == 0) return false;
  switch (use) {
    case Use::ahead:
      return held(Use::ahead) + bytes > most / kAheadOfRequests;
    case Use::fetch:
      return held(Use::ahead) + held(Use::fetch) + bytes > most;
    case Use::part:
    case Use::response: {
      // If this block alone exceeds the limit, waiting would not help: even without the owner's other blocks,
      // the limit leaves too little room.
      const std::size_t out = held(Use::part) + held(Use::response);
      return out != 0 && out + bytes > most;
    }
    default:
      return false;
  }
}

/// Even an owner above its share may have one block for each use. Otherwise a step of its calls could wait
/// for ever for memory that only later steps release. If an owner has no other block for a use, its block for
/// that use may also come from the reserve. This is possible because the blocks of earlier steps are released
/// when this block exists. A message so large that no reserve would be left waits until it fits.
bool Arena::beyond_share(std::size_t bytes, Use use, OwnerId owner) const {
  if (beyond_own_limit(bytes, use, owner)) return true;
  if (owner == kNobody || owners_present_ < 2) return false;
  const auto index = static_cast<std::size_t>(use);
  if (held_[index] == 0) return false;
  const std::size_t limit = options_.budget_bytes / 8 * kShareOfUse[index];
  std::size_t own = bytes, all = 0;
  for (std::size_t i = 0; i <= index; ++i) {
    own += owners_[owner].held[i];
    all += held_[i];
  }
  const std::size_t room = limit - std::min(limit, all);
  if (owners_[owner].held[index] != 0 && own > kOwnerShare * room) return true;
  const std::size_t reserved = limit / kReservedShare;
  return bytes <= limit - reserved && bytes + reserved > room && own > reserved / owners_present_;
}

BlockId Arena::lease(std::size_t size_class, Use use, OwnerId owner) {
  const std::uint32_t number = free_[size_class];
  Slot& slot = slots_[number];
  free_[size_class] = slot.next_free;
  slot.references = 1;
  slot.use = use;
  slot.owner = owner;
  Chunk& chunk = *slot.chunk;
  if (chunk.leased++ == 0) idle_bytes_ -= chunk.bytes;
  ++counters_.allocs;
  if (std::exchange(slot.warm, true)) ++counters_.reused;
  ++counters_.blocks_leased;
  counters_.bytes_leased += slot.block.capacity;
  held_[static_cast<std::size_t>(use)] += slot.block.capacity;
  owners_[owner].held[static_cast<std::size_t>(use)] += slot.block.capacity;
  return id_of(number);
}

void Arena::retain(BlockId id) {
  if (!live(id)) {
    ++counters_.stale;
    return;
  }
  ++slots_[id & kSlotMask].references;
}

void Arena::release(BlockId id) {
  if (!live(id)) {
    ++counters_.stale;
    return;
  }
  const std::uint32_t number = id & kSlotMask;
  Slot& slot = slots_[number];
  if (--slot.references > 0) return;
  Chunk& chunk = *slot.chunk;
  slot.next_free = std::exchange(free_[chunk.size_class], number);
  --counters_.blocks_leased;
  counters_.bytes_leased -= slot.block.capacity;
  ++counters_.releases;
  held_[static_cast<std::size_t>(slot.use)] -= slot.block.capacity;
  owners_[slot.owner].held[static_cast<std::size_t>(slot.use)] -= slot.block.capacity;
  if (--chunk.leased == 0) {
    idle_bytes_ += chunk.bytes;
    chunk.idle_since = ++idle_clock_;
  }
}

void Arena::release_unused(BlockId id) {
  const std::uint64_t releases = counters_.releases;
  release(id);
  counters_.releases = releases;
}

void Arena::leave_device() {
  device_ = nullptr;
  while (trim()) {
  }
  for (const auto& chunk : chunks_) {
    for (const std::uint32_t number : chunk->slots) slots_[number].block.region = nullptr;
    chunk->region.reset();
  }
}

const Arena::Slot* Arena::leased_slot(BlockId id) const {
  const std::uint32_t number = id & kSlotMask;
  if (number >= slots_.size()) return nullptr;
  const Slot& slot = slots_[number];
  return slot.references > 0 && slot.generation == id >> kSlotBits ? &slot : nullptr;
}

bool Arena::live(BlockId id) const { return leased_slot(id) != nullptr; }

const Block& Arena::at(BlockId id) const {
  const Slot* slot = leased_slot(id);
  return slot != nullptr ? slot->block : slots_[0].block;
}

const Block* Arena::known(BlockId id) const {
  const std::uint32_t number = id & kSlotMask;
  if (number >= slots_.size() || slots_[number].chunk == nullptr || id_of(number) != id) return nullptr;
  return &slots_[number].block;
}

BlockId Arena::find(const void* data, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto begins_after = [](std::uintptr_t at, const std::unique_ptr<Chunk>& chunk) {
    return at < reinterpret_cast<std::uintptr_t>(chunk->base);
  };
  const auto next = std::upper_bound(chunks_.begin(), chunks_.end(), address, begins_after);
  if (next == chunks_.begin()) return kNoBlock;
  const Chunk& chunk = **std::prev(next);
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(chunk.base);
  if (offset >= chunk.bytes || bytes > chunk.block_bytes - offset % chunk.block_bytes) return kNoBlock;
  const std::uint32_t number = chunk.slots[offset / chunk.block_bytes];
  return slots_[number].references > 0 ? id_of(number) : kNoBlock;
}

std::shared_ptr<const void> Arena::keep_mapped(BlockId id) {
  const std::uint32_t number = id & kSlotMask;
  const Chunk* chunk = number < slots_.size() ? slots_[number].chunk : nullptr;
  return chunk == nullptr ? nullptr : chunk->memory->keep_mapped();
}

ArenaCounters Arena::counters() const { return counters_; }

BlockId Arena::id_of(std::uint32_t slot) const { return slots_[slot].generation << kSlotBits | slot; }

// Allocates as much of a whole chunk as budget and system allow, but at least one block. If that fails,
// returns idle chunks of other classes to the system, one at a time, and tries again.
bool Arena::grow(std::size_t size_class) {
  const std::size_t block = class_bytes(size_class);
  const std::size_t in_use = counters_.bytes_reserved - idle_bytes_;
  if (block > options_.budget_bytes - in_use) return false;  // releasing idle chunks would not suffice
  do {
    const std::size_t room = options_.budget_bytes - counters_.bytes_reserved;
    std::size_t bytes = round_down(std::min(std::max(options_.chunk_bytes, block), room), block);
    for (; bytes >= block; bytes = round_down(bytes / 2, block)) {
      if (add_chunk(size_class, bytes)) return true;
    }
  } while (trim());
  return false;
}

bool Arena::add_chunk(std::size_t size_class, std::size_t bytes) {
  const std::size_t block_bytes = class_bytes(size_class);
  const std::size_t blocks = bytes / block_bytes;
  if (blocks > kSlotMask + 1 - slots_.size() + spare_slots_.size()) return false;

  auto chunk = std::make_unique<Chunk>();
  chunk->memory = device_->alloc_memory(bytes, options_.purpose);
  if (chunk->memory == nullptr) {
    refusal_ = device_->refusal();
    return false;
  }
  chunk->region =
      device_->reg_mr(chunk->memory->data(), bytes, call_access(*device_, options_.remote_access), &refusal_);
  if (chunk->region == nullptr) return false;
  chunk->base = chunk->memory->data();
  chunk->bytes = bytes;
  chunk->block_bytes = block_bytes;
  chunk->size_class = size_class;
  chunk->idle_since = ++idle_clock_;
  chunk->slots.reserve(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    std::uint32_t number = static_cast<std::uint32_t>(slots_.size());
    if (spare_slots_.empty()) {
      slots_.emplace_back();
    } else {
      number = spare_slots_.front();
      spare_slots_.pop_front();
    }
    Slot& slot = slots_[number];
    slot.block = {chunk->base + i * block_bytes, block_bytes, chunk->region.get()};
    slot.chunk = chunk.get();
    chunk->slots.push_back(number);
  }
  for (std::size_t i = blocks; i-- > 0;) {  // backwards, because the lowest address is then used first
    const std::uint32_t number = chunk->slots[i];
    slots_[number].next_free = std::exchange(free_[size_class], number);
  }
  counters_.bytes_reserved += bytes;
  idle_bytes_ += bytes;
  const auto by_address = [](const auto& a, const auto& b) { return a->base < b->base; };
  chunks_.insert(std::upper_bound(chunks_.begin(), chunks_.end(), chunk, by_address), std::move(chunk));
  return true;
}

// Large chunks are released before small ones, which many calls share. Among the large chunks, the one that
// has been idle for longest is released first.
bool Arena::trim() {
  Chunk* oldest = nullptr;
  for (const auto& chunk : chunks_) {
    if (chunk->leased > 0) continue;
    const auto rank = [](const Chunk& c) { return std::pair(c.size_class < kSmallClasses, c.idle_since); };
    if (oldest == nullptr || rank(*chunk) < rank(*oldest)) oldest = chunk.get();
  }
  if (oldest == nullptr) return false;
  retire(*oldest);
  return true;
}

bool Arena::trim_idle() {
  std::size_t trimmed = 0;
  while (trimmable()) {
    Chunk* oldest = nullptr;
    for (const auto& chunk : chunks_) {
      if (chunk->leased != 0 || chunk->idle_since > idle_marks_[0]) continue;
      if (oldest == nullptr || chunk->idle_since < oldest->idle_since) oldest = chunk.get();
    }
    if (oldest == nullptr) return false;
    if (trimmed >= kTrimBytes) return true;
    trimmed += oldest->bytes;
    retire(*oldest);
  }
  return false;
}

void Arena::retire(Chunk& chunk) {
  for (std::uint32_t* link = &free_[chunk.size_class]; *link != 0;) {
    Slot& slot = slots_[*link];
    if (slot.chunk == &chunk) {
      *link = slot.next_free;
    } else {
      link = &slot.next_free;
    }
  }
  for (const std::uint32_t number : chunk.slots) {
    if (on_retire_) on_retire_(id_of(number));
    Slot& slot = slots_[number];
    const std::uint32_t next_generation = (slot.generation + 1) & kGenerationMask;
    slot = Slot{};
    slot.generation = next_generation;
    spare_slots_.push_back(number);
  }
  idle_bytes_ -= chunk.bytes;
  counters_.bytes_reserved -= chunk.bytes;
  ++counters_.trimmed_chunks;
  std::erase_if(chunks_, [&](const auto& candidate) { return candidate.get() == &chunk; });
}

}  // namespace rdma_rpc::memory
