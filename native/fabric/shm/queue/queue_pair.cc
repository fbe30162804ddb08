// This file handles the life of a queue pair: creation, connecting, ERR and destruction. See queue_pair.h.
#include "fabric/shm/queue/queue_pair.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "fabric/shm/connect/compatibility.h"
#include "fabric/shm/queue/announcements.h"

namespace rdma_rpc::fabric::shm {
namespace {

struct SegmentView {
  QpSegment* header;
  PostedReceive* receives;
  Cell* cells;
};

SegmentView view(std::byte* data, std::uint32_t receive_slots) {
  return {reinterpret_cast<QpSegment*>(data), reinterpret_cast<PostedReceive*>(data + receives_offset()),
          reinterpret_cast<Cell*>(data + cells_offset(receive_slots))};
}

/// Orders earlier publishing before a later read of the peer's `sleeping` word.
void full_fence() { shared_fence(std::memory_order_seq_cst); }

}  // namespace

QueuePair::QueuePair(Device& device, CompletionQueue& cq, const QpOptions& options, std::uint32_t qp_num,
                     std::uint32_t index, Segment segment, const Token& token)
    : completions_(new SendCompletion[std::bit_ceil(options.send_wr_max)]),
      receives_(new Receive[std::bit_ceil(options.recv_wr_max)]),
      device_(device),
      cq_(cq),
      options_(options),
      index_(index),
      segment_(std::move(segment)),
      token_(token) {
  qp_num_ = qp_num;
  const std::uint32_t slots = std::bit_ceil(options.recv_wr_max);
  const SegmentView mine = view(segment_.map.data(), slots);
  own_ = mine.header;
  own_receives_ = mine.receives;
  own_cells_ = mine.cells;
  receive_mask_ = slots - 1;
  cell_mask_ = cells_for(slots) - 1;
  epoch_cells_ = std::min(device_.options().epoch_cells, cells_for(slots));
  completion_mask_ = std::bit_ceil(options.send_wr_max) - 1;
  AddressBlob& address = own_->address;
  address.magic = kMagic;
  address.version = kShmVersion;
  address.qp_num = qp_num_;
  address.device_token = device_.token();
  address.qp_token = token;
  address.poller = cq_.poller();
  address.receive_slots = slots;
  address.epoch_cells = epoch_cells_;
  if (device_.options().by_descriptors) {
    address.by_descriptors = 1;
  } else {
    address.pid = device_.process().pid;
    address.start_ticks = device_.process().start_ticks;
    address.token_addr = reinterpret_cast<std::uint64_t>(&device_.token());
    address.device_fd = static_cast<std::uint32_t>(device_.fd());
    address.qp_fd = static_cast<std::uint32_t>(segment_.fd.get());
    address.pipe_serial = cq_.pipe_serial();
    address.pipe_fd = static_cast<std::uint32_t>(cq_.doorbell_fd());
    address.announcements_fd = static_cast<std::uint32_t>(device_.announcements_fd());
    address.index = index_;
  }
  std::memcpy(address_.data(), &address, sizeof address);
  own_->posted.store(kFirstNumber, std::memory_order_relaxed);
  own_->consumed.store(kFirstNumber, std::memory_order_relaxed);
  own_->shortest_receive.store(~0u, std::memory_order_relaxed);
  own_->features.store(kSharedFeatures, std::memory_order_relaxed);
  own_->state.store(static_cast<std::uint32_t>(SharedState::live), std::memory_order_release);
  cq_.add(*this);
  ++device_.counts().queue_pairs;
  ++device_.counts().open_fds;
}

QueuePair::~QueuePair() {
  enter_error(SharedState::closed);
  wait_for_release();
  stop_handshake();
  cq_.remove(*this);
  device_.forget(*this);
  device_.leave(std::move(remote_));
  --device_.counts().queue_pairs;
  device_.counts().open_fds -= (segment_.fd ? 1u : 0u) + (shown_ ? 1u : 0u);
}

std::vector<std::byte> QueuePair::local_address() const { return {address_.begin(), address_.end()}; }

std::string QueuePair::connect(std::span<const std::byte> remote_address) {
  std::string reason;
  AddressBlob address{};
  const bool dials = device_.options().by_descriptors && options_.active;
  if (state_ != QpState::init) {
    reason = std::string("shm: connect needs a queue pair in INIT, this one is in ") + to_string(state_);
  } else if (reason = why_not_read(remote_address); !reason.empty()) {
  } else if (remote_address.size() < sizeof address || (remote_address.size() != sizeof address && !dials)) {
    reason = "shm: the peer's address has " + std::to_string(remote_address.size()) + " bytes, not " +
             std::to_string(sizeof address);
  } else {
    std::memcpy(&address, remote_address.data(), sizeof address);
    reason = check(address);
  }
  const auto path = remote_address.subspan(std::min(sizeof address, remote_address.size()));
  if (!reason.empty()) {
  } else if (device_.options().by_descriptors) {
    reason = start_handshake(address, {reinterpret_cast<const char*>(path.data()), path.size()});
  } else {
    reason = map_peer(address);
    if (reason.empty()) state_ = QpState::rts;
  }
  if (!reason.empty()) enter_error(SharedState::error);
  return reason;
}

std::string QueuePair::check(const AddressBlob& address) const {
  if (!std::has_single_bit(address.receive_slots) || address.receive_slots > kReceiveSlotsMax ||
      address.epoch_cells == 0 || address.epoch_cells > cells_for(address.receive_slots) ||
      address.poller >= kPollersMax || address.index >= kQueuePairsMax || address.qp_num == 0 ||
      address.by_descriptors > 1) {
    return "shm: a field of the peer's address is out of range";
  }
  if ((address.by_descriptors != 0) != device_.options().by_descriptors) {
    return "shm: one side uses shm-fd (passed descriptors), the other shm (descriptors opened through /proc)";
  }
  if (std::memcmp(&address, address_.data(), sizeof address) == 0) {
    return "shm: a queue pair cannot connect to its own address";
  }
  return {};
}

std::string QueuePair::map_peer(const AddressBlob& address) {
  std::string error;
  auto remote = device_.remote(address, &error);
  if (!remote) return error;
  const std::size_t bytes = qp_segment_bytes(address.receive_slots);
  Mapping map = map_peer_memfd(remote->process(), address.qp_fd, bytes, PeerMay::write, &error);
  if (!map) return error;
  const SegmentView peer = view(map.data(), address.receive_slots);
  // The first access to the page is a possible write that changes nothing. For a mere read, the kernel would
  // also map the surrounding pages. Each peer would then use memory for pages that are not needed.
  std::uint32_t never = ~0u;
  peer.header->claimed.compare_exchange_strong(never, never);
  if (std::memcmp(&peer.header->address, &address, sizeof address) != 0) {
    return "shm: the peer's queue pair is not the one that its address names";
  }
  auto pipe = remote->pipe(address, device_.counts(), &error);
  if (!pipe) return error;
  // Maps the memory that SENDs will need. Otherwise the system might refuse the mapping later, which would
  // end the connection.
  const PostedReceive& first = peer.receives[kFirstNumber & (address.receive_slots - 1)];
  const std::uint32_t memory = first.memory.load(std::memory_order_relaxed);
  RemoteRange range;
  if (peer.header->posted.load(std::memory_order_acquire) != kFirstNumber && memory != kNoMemory) {
    remote->resolve(memory, first.addr.load(std::memory_order_relaxed), 1, &range, &error);
    if (!error.empty()) return error;
  }
  error = claim(map.data(), address);
  if (!error.empty()) {
    device_.leave(std::move(remote));
    return error;
  }
  use_peer(address, std::move(map), std::move(remote));
  peer_pipe_ = std::move(pipe);
  device_.note_open_file(*this);
  return {};
}

bool QueuePair::close_opened_file() {
  if (own_->claimed.load(std::memory_order_acquire) == 0) return false;
  segment_.fd.reset();
  --device_.counts().open_fds;
  return true;
}

/// Claims the peer's segment `data`. Returns "", or the reason why the connection is not meant for this queue
/// pair.
std::string QueuePair::claim(std::byte* data, const AddressBlob& address) const {
  QpSegment& peer = *view(data, address.receive_slots).header;
  if (std::memcmp(&peer.address, &address, sizeof address) != 0) {
    return "shm: the peer's queue pair is not the one that its address names";
  }
  std::uint32_t unclaimed = 0;
  if (!peer.claimed.compare_exchange_strong(unclaimed, 1)) {
    return "shm: the peer's queue pair is connected to another one";
  }
  return {};
}

void QueuePair::use_peer(const AddressBlob& address, Mapping map, std::shared_ptr<RemoteDevice> remote) {
  const SegmentView peer = view(map.data(), address.receive_slots);
  peer_ = peer.header;
  peer_receives_ = peer.receives;
  peer_cells_ = peer.cells;
  peer_receive_mask_ = address.receive_slots - 1;
  peer_cell_mask_ = cells_for(address.receive_slots) - 1;
  epoch_look_ = peer_epoch_cells_ = address.epoch_cells;
  peer_poller_ = &remote->poller(address.poller);
  peer_announcements_ = remote->announcements();
  peer_index_ = address.index;
  peer_qp_num_ = address.qp_num;
  peer_features_ = peer_->features.load(std::memory_order_relaxed);
  peer_map_ = std::move(map);
  remote_ = std::move(remote);
  // From now on poll() looks at messages that arrived before the connection.
  cq_.note(*this);
}

void QueuePair::to_error() {
  enter_error(SharedState::error);
  // The caller may know that the peer has died, so poll() checks this at once.
  awaited_.next_poll = {};
  cq_.note_failed(*this);
}

void QueuePair::enter_error(SharedState shown) {
  if (state_ == QpState::err) {
    // The fault stays visible after the queue pair has been destroyed. Otherwise a peer that has not polled
    // since then would find only `closed`, and would learn of its own ERR only with its next request.
    if (shown == SharedState::closed &&
        own_->state.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(SharedState::fault)) {
      own_->state.store(static_cast<std::uint32_t>(shown), std::memory_order_seq_cst);
    }
    return;
  }
  state_ = QpState::err;
  own_->state.store(static_cast<std::uint32_t>(shown), std::memory_order_seq_cst);
  await_any_release();
  if (peer_ != nullptr) ring_doorbell({}, true);
  stop_handshake();
  if (peer_ == nullptr && control_ != nullptr) control_->close();
  cq_.note_failed(*this);
}

/// `requests` are the requests that have been published. `failed` is true when the queue pair has failed.
void QueuePair::ring_doorbell(std::span<const SendWr> requests, bool failed) {
  full_fence();
  if (peer_announcements_ != nullptr && peer_->announce.load(std::memory_order_relaxed) != 0) {
    announce(*peer_announcements_, peer_index_);
    full_fence();
  }
  const std::uint32_t sleeping = peer_poller_->sleeping.load(std::memory_order_relaxed);
  if (sleeping == 0 || sleeping == last_rung_) return;
  const auto solicited = [](const SendWr& wr) { return wr.solicited; };
  const bool solicited_only =
      (sleeping & kSolicitedOnly) != 0 && (peer_features_ & feature_solicited_only) != 0;
  if (solicited_only && !failed && std::none_of(requests.begin(), requests.end(), solicited)) return;
  last_rung_ = sleeping;
  if (control_ != nullptr) return control_->ring();
  const char byte = 0;
  stall_point();
  // A write to a full pipe may fail. The pipe is then readable, which is all that a wake-up needs.
  [[maybe_unused]] const ssize_t written = ::write(peer_pipe_->fd.get(), &byte, 1);
}

bool QueuePair::peer_wants_cpu(std::uint32_t cpu) const {
  if (state_ != QpState::rts || peer_poller_->cpu.load(std::memory_order_relaxed) != cpu) return false;
  const std::uint32_t sleeping = peer_poller_->sleeping.load(std::memory_order_relaxed);
  return sleeping == 0 || sleeping == last_rung_;
}

bool QueuePair::peer_is_dead() const {
  if (control_ != nullptr) return control_->ended();
  return !remote_ || !is_running(remote_->process());
}

bool QueuePair::uses(std::uint64_t addr, std::uint64_t bytes) const {
  for (std::uint32_t i = received_; i != published_; ++i) {
    const Receive& receive = receives_[i & receive_mask_];
    if (receive.addr < addr + bytes && addr < receive.addr + receive.length) return true;
  }
  bool bound = false;
  device_.table().for_each(ProtectionTable::Kind::window, [&](std::uint32_t, const KeyEntry& key_entry) {
    bound = bound || (key_entry.qp_num == qp_num_ && key_entry.overlaps(addr, bytes));
  });
  return bound;
}

}  // namespace rdma_rpc::fabric::shm
