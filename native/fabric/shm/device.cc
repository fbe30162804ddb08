// Opens the device and creates the objects that belong to it. See device.h.
#include "fabric/shm/device.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "fabric/shm/connect/compatibility.h"
#include "fabric/shm/memory/regions.h"
#include "fabric/shm/queue/completion_queue.h"
#include "fabric/shm/queue/queue_pair.h"
#include "fabric/system_limit.h"

namespace rdma_rpc::fabric {
namespace shm {
namespace {

constexpr std::uint32_t kMaxQpWr = 16384;
static_assert(kMaxQpWr <= kReceiveSlotsMax);
constexpr std::uint32_t kMaxSge = 16;
constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 30;

/// Returns whether peers can probably reach all memory of this process. The system call must be allowed here,
/// and Yama must not separate processes of one user. connect() tries that call on the real peer.
bool process_vm_may_work() {
  std::uint64_t from = 1, to = 0;
  const iovec here{&to, sizeof to};
  const iovec there{&from, sizeof from};
  if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(sizeof to)) return false;
  const UniqueFd yama(::open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC));
  char scope = '0';
  if (yama && ::read(yama.get(), &scope, 1) != 1) return false;
  return scope == '0' || ::geteuid() == 0;
}

/// Up to this size, two extra copies take less time than a READ or WRITE costs in addition (measured in CPU
/// time of both sides).
constexpr std::uint32_t kSegmentedBytes = 32 * 1024;
/// Up to this size, one extra copy takes less time than READs of memory that only the kernel can reach (in
/// CPU time of both sides; docs/internals/decisions/memory.md has the figures).
constexpr std::uint32_t kCopiedRequestBytes = 4 * 1024 * 1024;

Capabilities make_capabilities(bool by_descriptors, bool any_memory) {
  Capabilities caps;
  caps.name = by_descriptors ? "shm-fd" : "shm";
  caps.max_inline = kInlineMax;
  caps.max_sge = kMaxSge;
  caps.max_sge_read = kMaxSge;
  caps.max_qp_wr = kMaxQpWr;
  caps.max_memories = kMemoriesMax;
  caps.max_msg_bytes = kMaxMessageBytes;
  caps.immediate = true;
  caps.windows = true;
  caps.send_immediate = true;
  caps.atomics = true;
  caps.solicited = true;
  caps.copies_when_posted = true;
  caps.reasons = {
      {Feature::shared_receives, "on shm, each queue pair has receives of its own"},
      {Feature::srq_limit, "it has no shared receives"},
      {Feature::uc, "its memory loses nothing, so RC costs no more"},
      {Feature::ud, "each queue pair has a ring that one peer may write"},
      {Feature::multicast, "it has no UD queue pairs"},
      {Feature::drain, "each request is complete when post_send() returns, so that none is under way"},
      {Feature::reset, "a queue pair in ERR has given its ring to one peer; make another one"},
      {Feature::steps, "the two sides find each other's rings in one step"},
  };
  caps.segmented_bytes = kSegmentedBytes;
  caps.copied_request_bytes = any_memory ? kCopiedRequestBytes : 0;
  caps.exposes_any_memory = any_memory;
  caps.peers_keep_access = true;
  return caps;
}

std::uint32_t first_generation(const Token& token) {
  std::uint32_t generation = 0;
  std::memcpy(&generation, token.data(), sizeof generation);
  return generation;
}

}  // namespace

bool make_token(Token* token) {
  return ::getrandom(token->data(), token->size(), 0) == static_cast<ssize_t>(token->size());
}

Device::Device(const ShmOptions& options, Segment segment, Segment announcements, const Token& token,
               bool any_memory)
    : options_(options),
      capabilities_(make_capabilities(options.by_descriptors, any_memory)),
      segment_(std::move(segment)),
      announcements_segment_(std::move(announcements)),
      token_(token),
      process_(this_process()),
      table_(shared().keys, first_generation(token)),
      pollers_used_(kPollersMax) {
  shared().header = {kMagic, kShmVersion, token_, kShape};
  counters_.open_fds = 1;
  if (announcements_segment_.map) {
    this->announcements()->header = {kMagic, kShmVersion, token_, kShape};
    ++counters_.open_fds;
  }
}

std::unique_ptr<HostMemory> Device::alloc_memory(std::size_t bytes, std::string_view purpose) {
  if (bytes == 0) return nullptr;
  char name[64];
  std::snprintf(name, sizeof name, "rdma-rpc:%.*s",
                static_cast<int>(std::min<std::size_t>(purpose.size(), 48)), purpose.data());
  Segment segment = create_segment(name, bytes, PeerMay::write, &refusal_);
  if (!segment.map) return nullptr;
  auto memory = std::make_unique<SharedMemory>(*this, std::move(segment));
  if (memory->publish()) return memory;
  refusal_ = "shm: all " + std::to_string(kMemoriesMax) + " memory slots of the device are in use";
  return nullptr;
}

std::uint32_t Device::publish(SharedMemory& memory, const PageRange& range, int fd) {
  auto free = std::find(memories_.begin(), memories_.end(), nullptr);
  if (free == memories_.end()) {
    if (memories_.size() == kMemoriesMax) return kNoMemory;
    free = memories_.insert(free, nullptr);
  }
  *free = &memory;
  const auto slot = static_cast<std::uint32_t>(free - memories_.begin());
  ++counters_.open_fds;
  // On shm-fd, a memory enters the table when peers get its descriptor, because they do not have to know of
  // memory that they cannot reach.
  if (!options_.by_descriptors) enter(slot, range, fd);
  return slot;
}

void Device::enter(std::uint32_t slot, const PageRange& range, int fd) {
  TableMemory& entry = shared().memories[slot];
  // Orders the new fields after the 0 that revoke() stored in `serial`, for peers that are reading this
  // entry now (map_memory()).
  shared_fence(std::memory_order_release);
  entry.addr.store(range.addr, std::memory_order_relaxed);
  entry.bytes.store(range.bytes, std::memory_order_relaxed);
  entry.fd.store(static_cast<std::uint32_t>(fd), std::memory_order_relaxed);
  entry.serial.store(++memory_serial_, std::memory_order_release);
}

void Device::revoke(std::uint32_t slot) {
  memories_[slot] = nullptr;
  shared().memories[slot].serial.store(0, std::memory_order_seq_cst);
  std::erase(shown_, slot);
  --counters_.open_fds;
}

std::unique_ptr<MemoryRegion> Device::reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                             std::string* error) {
  const auto from = reinterpret_cast<std::uint64_t>(addr);
  // On shm-fd memory cannot be reached by its address. The right to bind windows later exposes nothing yet.
  const std::uint32_t may_bind = options_.by_descriptors ? 0u : access_mw_bind;
  const bool exposed = (access & (kRemoteAccess | may_bind)) != 0;
  const std::uint32_t memory = memory_of(from, length);
  std::string reason;
  if (std::string why = why_not_register(addr, length, access, capabilities_); !why.empty()) {
    reason = "shm: " + why;
  } else if (exposed && memory == kNoMemory && !capabilities_.exposes_any_memory) {
    reason =
        "shm: this system lets no other process reach memory that is not of alloc_memory() "
        "(process_vm_readv)";
  } else if (memory == kNoMemory && (access & access_remote_atomic) != 0) {
    reason = "shm: remote atomics need memory of alloc_memory(), since the peer's CPU must have it mapped";
  }
  const std::uint32_t index = reason.empty() ? table_.add(ProtectionTable::Kind::region) : 0;
  if (index == 0) {
    if (reason.empty()) {
      reason = "shm: all " + std::to_string(kKeysMax) + " memory keys of the device are in use";
    }
    if (error != nullptr) *error = reason;
    return nullptr;
  }
  if (memory != kNoMemory && (access & kRemoteAccess) != 0) show(memory);
  return std::make_unique<Region>(*this, index, KeyEntry{from, length, access, 0, memory, 0});
}

std::unique_ptr<MemoryWindow> Device::alloc_mw() {
  const std::uint32_t index = table_.add(ProtectionTable::Kind::window);
  return index != 0 ? std::make_unique<Window>(*this, index) : nullptr;
}

std::unique_ptr<fabric::CompletionQueue> Device::create_cq(std::uint32_t) {
  const auto free = std::find(pollers_used_.begin(), pollers_used_.end(), false);
  int ends[2];
  if (free == pollers_used_.end()) {
    refusal_ = "shm: all " + std::to_string(kPollersMax) + " completion queues of the device are in use";
    return nullptr;
  }
  if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
    refusal_ = "shm: cannot create the wake-up pipe: " + system_refusal(errno);
    return nullptr;
  }
  *free = true;
  counters_.open_fds += 2;
  const auto poller = static_cast<std::uint32_t>(free - pollers_used_.begin());
  auto cq = std::make_unique<CompletionQueue>(*this, poller, UniqueFd(ends[0]), UniqueFd(ends[1]));
  if (!options_.by_descriptors || cq->watch_lines()) return cq;
  refusal_ = "shm: no epoll or timer descriptor: " + system_refusal(errno);
  return nullptr;
}

void Device::forget(const CompletionQueue& cq) {
  pollers_used_[cq.poller()] = false;
  counters_.open_fds -= 2;
}

std::uint32_t Device::memory_of(std::uint64_t addr, std::uint64_t bytes) const {
  for (const SharedMemory* memory : memories_) {
    if (memory != nullptr && memory->contains(addr, bytes)) return memory->slot();
  }
  return kNoMemory;
}

std::shared_ptr<RemoteDevice> Device::remote(const AddressBlob& address, std::string* error) {
  std::erase_if(remotes_, [](const auto& known) { return known.expired(); });
  for (const auto& known : remotes_) {
    auto remote = known.lock();
    if (remote->is(address)) return remote;
  }
  auto remote = RemoteDevice::open(address, options_.any_memory, error);
  if (!remote) return nullptr;
  remotes_.push_back(remote);
  // Access rights are symmetric: if this process cannot reach all memory of the peer, the peer cannot reach
  // all memory of this process.
  if (!remote->reaches_any_memory()) capabilities_.exposes_any_memory = false;
  return remote;
}

void Device::leave(std::shared_ptr<RemoteDevice> remote) {
  if (!remote || options_.by_descriptors) return;
  const int known = remote == released_remote_ ? 1 : 0;
  if (remote.use_count() != 1 + known) return;
  remote->unmap_memories();
  released_remote_ = std::move(remote);
}

FileNote Device::note_of(std::uint32_t slot, int* fd) const {
  const SharedMemory::Shown shown = memories_[slot]->shown(slot);
  *fd = shown.fd;
  FileNote note;
  note.slot = slot;
  note.serial = shared().memories[slot].serial.load(std::memory_order_relaxed);
  note.addr = shown.range.addr;
  note.bytes = shown.range.bytes;
  return note;
}

void Device::show(std::uint32_t slot) {
  if (!options_.by_descriptors || std::find(shown_.begin(), shown_.end(), slot) != shown_.end()) return;
  const SharedMemory::Shown shown = memories_[slot]->shown(slot);
  enter(slot, shown.range, shown.fd);
  shown_.push_back(slot);
  int fd = -1;
  const FileNote note = note_of(slot, &fd);
  for (QueuePair* qp : queue_pairs_) qp->show(note, fd);
}

bool Device::show_all(ControlConnection& control) const {
  return std::all_of(shown_.begin(), shown_.end(), [&](std::uint32_t slot) {
    int fd = -1;
    const FileNote note = note_of(slot, &fd);
    return control.send(note, fd);
  });
}

std::uint32_t Device::share(std::uint32_t memory, std::uint64_t addr, std::uint64_t bytes) {
  if (memory == kNoMemory) return kNoMemory;
  SharedMemory* whole = memories_[memory];
  if (whole == nullptr || !whole->contains(addr, bytes)) return kNoMemory;
  const std::uint32_t slot = whole->slot_of(addr, bytes);
  if (slot != kNoMemory) return show(slot), slot;
  // Pages of a part of the memory were replaced earlier. If the range is not in use, it can become one memfd
  // again.
  const PageRange pages = SharedMemory::pages_of(addr, bytes);
  if (in_use(pages) || !whole->move_to_new_pages(pages)) return kNoMemory;
  const std::uint32_t fresh = whole->slot_of(addr, bytes);
  if (fresh != kNoMemory) show(fresh);
  return fresh;
}

bool Device::in_use(const PageRange& pages) const {
  return std::any_of(queue_pairs_.begin(), queue_pairs_.end(),
                     [&](const QueuePair* qp) { return qp->uses(pages.addr, pages.bytes); });
}

bool Device::reclaim(std::uint64_t addr, std::uint64_t bytes) {
  const std::uint32_t memory = memory_of(addr, bytes);
  const PageRange pages = SharedMemory::pages_of(addr, bytes);
  if (memory == kNoMemory || !memories_[memory]->move_to_new_pages(pages)) return false;
  for (QueuePair* qp : queue_pairs_) {
    if (qp->uses(pages.addr, pages.bytes)) qp->to_error();
  }
  table_.for_each(ProtectionTable::Kind::region, [&](std::uint32_t key, const KeyEntry& key_entry) {
    if (pages.overlaps(key_entry.addr, key_entry.length)) table_.unshare(key);
  });
  return true;
}

void Device::revoke_and_wait(std::uint32_t key, const KeyEntry& key_entry) {
  table_.revoke(key);
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(options_.revoke_grace_us);
  for (const QueuePair* qp : queue_pairs_) {
    // A window's key is valid on one queue pair only, so the in-use markers of other peers are ignored.
    if (key_entry.qp_num != 0 && key_entry.qp_num != qp->qp_num()) continue;
    while (qp->peer_holds(key)) {
      if (std::chrono::steady_clock::now() > end) {
        if (!qp->peer_is_dead()) reclaim(key_entry.addr, key_entry.length);
        break;
      }
      ::sched_yield();
    }
  }
}

}  // namespace shm

namespace {

/// sockaddr_un has room for one more byte, the terminating zero.
constexpr std::size_t kPathBytesMax = 107;

}  // namespace

std::vector<std::byte> shm_address_via(std::span<const std::byte> address, const std::string& path,
                                       std::string* error) {
  const std::string other = shm::why_not_read(address);
  if (!other.empty()) {
    if (error != nullptr) *error = other;
    return {};
  }
  shm::AddressBlob blob;
  const bool good = address.size() == sizeof blob && !path.empty() && path.size() <= kPathBytesMax;
  if (good) std::memcpy(&blob, address.data(), sizeof blob);
  if (!good || blob.by_descriptors != 1) {
    if (error != nullptr)
      *error = "shm: the peer's address is not one of shm-fd, or its path is not that of a unix socket";
    return {};
  }
  std::vector<std::byte> via(address.begin(), address.end());
  const auto* text = reinterpret_cast<const std::byte*>(path.data());
  via.insert(via.end(), text, text + path.size());
  return via;
}

std::unique_ptr<Device> open_shm_device(const ShmOptions& options, std::string* error) {
  const auto refuse = [error](std::string reason) {
    if (error != nullptr) *error = std::move(reason);
    return nullptr;
  };
  if (options.copy_chunk_bytes == 0) return refuse("shm: copy_chunk_bytes must be at least 1");
  Token token{};
  if (!shm::make_token(&token)) return refuse("shm: no random bytes (getrandom)");
  std::string reason;
  shm::Segment segment =
      shm::create_segment("rdma-rpc:device", sizeof(shm::DeviceSegment), shm::PeerMay::read, &reason);
  if (!segment.map) return refuse(reason);
  shm::Segment announcements;
  if (!options.by_descriptors) {
    announcements = shm::create_segment("rdma-rpc:announcements", sizeof(shm::Announcements),
                                        shm::PeerMay::write, &reason);
    if (!announcements.map) return refuse(reason);
  }
  const bool any_memory = options.any_memory && !options.by_descriptors && shm::process_vm_may_work();
  return std::make_unique<shm::Device>(options, std::move(segment), std::move(announcements), token,
                                       any_memory);
}

}  // namespace rdma_rpc::fabric
