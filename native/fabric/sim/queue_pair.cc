// Posts, connects, and determines the order in which requests start, finish and are reported. See
// queue_pair.h.
#include "fabric/sim/queue_pair.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "fabric/software/requests.h"

namespace rdma_rpc::fabric {
namespace {

// The address blob that local_address() returns.
struct Address {
  std::uint64_t magic;
  std::uint64_t world;
  std::uint32_t qp_num;
  std::uint32_t reserved;
};
constexpr std::uint64_t kMagic = 0x314d4953'43505252;  // "RRPCSIM1"

}  // namespace

SimQueuePair::SimQueuePair(SimDevice& device, SimCompletionQueue& cq, const QpOptions& options)
    : device_(device),
      world_(device.world()),
      cq_(cq),
      options_(options),
      sge_max_(std::max(device.capabilities().max_sge, device.capabilities().max_sge_read)),
      state_(options.stepwise ? QpState::reset : QpState::init),
      sends_(options.send_wr_max),
      send_slots_(sends_.slots()),
      sge_room_(send_slots_.size() * sge_max_),
      inline_room_(send_slots_.size() * device.capabilities().max_inline),
      own_receives_(options.shared_receives == nullptr ? options.recv_wr_max : 0),
      receives_(options.shared_receives == nullptr
                    ? own_receives_
                    : static_cast<SimReceiveQueue*>(options.shared_receives)->receives) {
  qp_num_ = world_.add(*this);
  cq_.make_room(options.send_wr_max + options.recv_wr_max + 1);  // and one for its own end, see kNoReceive
  ++device_.live.queue_pairs;
}

SimQueuePair::~SimQueuePair() {
  finish_updates();
  cq_.forget(*this, options_.send_wr_max + options_.recv_wr_max + 1);
  world_.wake_peers_of(*this);
  world_.remove(*this);
  if (peer_ != nullptr) peer_->reached_by_.erase(qp_num_);
  for (const std::uint32_t number : reached_by_) {
    SimQueuePair* other = world_.find(number);
    if (other == nullptr) continue;  // this queue pair itself, which has already been removed
    other->peer_ = nullptr;
    other->peer_gone_as_ = killed_ ? seen_by_peers_ : WcStatus::rem_abort_err;
  }
  for (std::uint64_t i = sends_.started; i != sends_.posted; ++i) {
    drop_bind(send_slot(i));
  }
  receives_.freed(unpolled_);  // shared receives that were not polled are lost to the user, as with a NIC
  --device_.live.queue_pairs;
  world_.settle();
}

std::vector<std::byte> SimQueuePair::local_address() const {
  const Address address{kMagic, world_.token(), qp_num_, 0};
  std::vector<std::byte> blob(sizeof address);
  std::memcpy(blob.data(), &address, sizeof address);
  return blob;
}

std::string SimQueuePair::connect(std::span<const std::byte> remote_address) {
  Address address{};
  const auto refuse = [this](std::string reason) {
    enter_error();
    world_.settle();
    return reason;
  };
  if (state_ != QpState::init) {
    return refuse(std::string("sim: connect needs a queue pair in INIT, this one is in ") +
                  to_string(state_));
  }
  if (options_.type == QpType::ud) {
    if (!remote_address.empty())
      return refuse("sim: a UD queue pair has no peer; connect it without an address");
    state_ = options_.stepwise ? QpState::rtr : QpState::rts;
    return {};
  }
  if (remote_address.size() != sizeof address) {
    return refuse("sim: the peer's address has " + std::to_string(remote_address.size()) + " bytes, not " +
                  std::to_string(sizeof address));
  }
  std::memcpy(&address, remote_address.data(), sizeof address);
  if (address.magic != kMagic || address.reserved != 0)
    return refuse("sim: the peer's address is not a sim address");
  if (address.world != world_.token())
    return refuse("sim: the peer is in another world (process or SimWorld)");
  SimQueuePair* peer = world_.find(address.qp_num);
  if (peer == nullptr) return refuse("sim: queue pair " + std::to_string(address.qp_num) + " does not exist");
  if (peer->options_.type != options_.type)
    return refuse(std::string("sim: the peer's queue pair is of type ") + to_string(peer->options_.type) +
                  ", this one of type " + to_string(options_.type));
  if (peer == this) return refuse("sim: a queue pair cannot connect to its own address");
  if (peer->peer_ != nullptr && peer->peer_ != this) {
    return refuse("sim: queue pair " + std::to_string(address.qp_num) + " is connected to another one");
  }
  peer_ = peer;
  peer->reached_by_.insert(qp_num_);
  if (options_.stepwise) {
    state_ = QpState::rtr;
  } else if (world_.options().connects_late) {
    state_ = QpState::rtr;
    connects_at_ = world_.now() + world_.latency();
    cq_.add_connecting(*this);
    world_.wake(*this, connects_at_);
  } else {
    state_ = QpState::rts;
  }
  world_.wake(*peer, world_.now());
  world_.settle();
  return {};
}

bool SimQueuePair::can_conclude() const {
  if (state_ != QpState::rtr) return true;
  if (world_.now() < connects_at_ || killed_) return false;
  return peer_ == nullptr || peer_->killed_ || peer_->state_ == QpState::err || peer_->peer_ == this;
}

void SimQueuePair::conclude() {
  if (state_ != QpState::rtr) return;  // the attempt has been cancelled
  if (std::string why = world_.faults.connect_failure(); !why.empty()) {
    error_ = "sim: " + why;
  } else if (peer_ != nullptr && peer_->killed_) {
    error_ = "sim: the peer does not answer";
  } else if (peer_ == nullptr || peer_->state_ == QpState::err) {
    error_ = "sim: the peer has given the connection up";
  }
  if (!error_.empty()) return enter_error();
  state_ = QpState::rts;
  world_.wake(*this, world_.now());
  world_.wake(*peer_, world_.now());
}

std::size_t SimQueuePair::post_send(std::span<const SendWr> requests) {
  std::size_t taken = 0;
  if (state_ == QpState::reset || state_ == QpState::init || state_ == QpState::rtr) return taken;
  for (const SendWr& wr : requests) {
    if (sends_.is_full()) break;
    SendSlot& slot = send_slot(sends_.posted++);
    stage(slot, wr);
    world_.wake(*this, slot.due_at);
    ++taken;
  }
  world_.settle();
  return taken;
}

std::size_t SimQueuePair::post_recv(std::span<const RecvWr> requests) {
  if (options_.shared_receives != nullptr || state_ == QpState::reset) return 0;
  const std::size_t taken = receives_.post(requests);
  if (state_ == QpState::err) world_.wake(*this, world_.now());  // so that progress() flushes the requests
  world_.settle();
  return taken;
}

void SimQueuePair::stage(SendSlot& slot, const SendWr& wr) {
  slot = {};
  slot.wr = wr;
  slot.bytes = software::bytes_of(wr.sges);
  slot.status = software::why_malformed(wr, slot.bytes, device_.capabilities());
  if (slot.status == WcStatus::success)
    slot.status = software::why_not_on(options_.type, wr, slot.bytes, device_.capabilities());
  slot.due_at = world_.scheduled() ? world_.now() + world_.latency() + extra_delay_ns_ : 0;
  if (slot.status != WcStatus::success) return;

  const auto index = static_cast<std::size_t>(&slot - send_slots_.data());
  Sge* sges = &sge_room_[index * sge_max_];
  std::copy(wr.sges.begin(), wr.sges.end(), sges);
  slot.wr.sges = {sges, wr.sges.size()};
  if (wr.inline_data && slot.bytes > 0) {
    std::byte* data = &inline_room_[index * device_.capabilities().max_inline];
    const Sge whole{reinterpret_cast<std::uintptr_t>(data), static_cast<std::uint32_t>(slot.bytes), 0};
    software::gather(wr.sges, data);
    sges[0] = whole;
    slot.wr.sges = {sges, 1};
  }
  if (wr.opcode == Opcode::bind_mw) {
    auto* window = static_cast<software::Window*>(wr.bind.window);
    slot.bind = {window->of(device_.protection) ? window->next_key() : 0, wr.bind.region->lkey(),
                 wr.bind.access, wr.bind.addr, wr.bind.length};
    if (slot.bind.key == 0) slot.status = WcStatus::mw_bind_err;
  }
}

/// Frees a key that post_send has assigned to a bind that will not be executed.
void SimQueuePair::drop_bind(const SendSlot& slot) {
  software::KeyTable& keys = device_.protection.keys;
  if (slot.bind.key != 0 && keys.find(slot.bind.key) != nullptr) keys.remove(slot.bind.key);
}

void SimQueuePair::progress() {
  if (killed_ || device_.stopped) return;
  if (state_ == QpState::rtr && !options_.stepwise && can_conclude()) cq_.announce();
  if (!inbox_.empty()) take_packets();
  if (state_ == QpState::err) {
    carry_out_reads();  // READs in progress may still copy until the flush
    if (world_.now() >= flush_at_) flush();
    return;
  }
  for (bool moved = true; moved;) {
    moved = carry_out_reads();
    moved = start_some() || moved;
  }
  retire();
  if (state_ == QpState::sqe) flush_sends();
  if (tells_drained_) note_drained();
}

bool SimQueuePair::must_wait(const SendSlot& slot) const {
  if (slot.wr.fence && reads_waiting_ > 0) return true;
  if (software::brings_bytes(slot.wr.opcode) && reads_waiting_ >= device_.capabilities().max_rd_atomic)
    return true;
  return options_.type == QpType::rc && !software::is_local(slot.wr.opcode) && must_wait_for_peer();
}

bool SimQueuePair::must_wait_for_peer() const {
  return peer_ != nullptr && !peer_->killed_ &&
         (peer_->state_ == QpState::init || peer_->state_ == QpState::reset || peer_->device_.stopped);
}

bool SimQueuePair::start_some() {
  bool moved = false;
  while (!failed_ && state_ != QpState::sqd && sends_.started != sends_.posted) {
    SendSlot& slot = send_slot(sends_.started);
    if (slot.due_at > world_.now()) break;
    if (slot.status != WcStatus::success) {
      finish(slot, slot.status);
    } else {
      if (must_wait(slot)) break;
      const WcStatus status = begin(slot);
      if (slot.phase != Phase::reading) finish(slot, status);
    }
    ++sends_.started;
    moved = true;
  }
  return moved;
}

bool SimQueuePair::carry_out_reads(bool early) {
  bool moved = false;
  for (std::uint64_t i = sends_.retired; reads_waiting_ > 0 && i != sends_.started; ++i) {
    SendSlot& slot = send_slot(i);
    if (slot.phase != Phase::reading) continue;
    // READs are answered in order, so the READs behind this one are not due either.
    if (!early && slot.due_at > world_.now()) break;
    if (must_wait_for_peer()) break;
    if (!early && software::is_atomic(slot.wr.opcode) && must_wait_to_update(slot)) break;
    --reads_waiting_;
    finish(slot, read_from_peer(slot));
    moved = true;
  }
  return moved;
}

void SimQueuePair::finish(SendSlot& slot, WcStatus status) {
  const bool unanswered = status == WcStatus::retry_exc_err || status == WcStatus::rem_abort_err;
  slot.phase = Phase::done;
  slot.status = status;
  slot.done_at = world_.now() + (unanswered ? world_.retry_timeout() : world_.latency());
  if (status != WcStatus::success) failed_ = true;
  if (world_.scheduled()) world_.wake(*this, slot.done_at);
}

void SimQueuePair::retire() {
  while (sends_.retired != sends_.started) {
    const SendSlot& slot = send_slot(sends_.retired);
    if (slot.phase != Phase::done || slot.done_at > world_.now()) return;
    ++sends_.retired;
    if (slot.status != WcStatus::success || slot.wr.signaled)
      complete_send(slot, slot.status, sends_.retired);
    if (slot.status != WcStatus::success) return options_.type == QpType::rc ? enter_error() : enter_sqe();
  }
}

void SimQueuePair::finish_updates() {
  device_.finish_update();
  if (peer_ != nullptr) peer_->device_.finish_update();
}

void SimQueuePair::to_error() {
  enter_error();
  world_.settle();
}

void SimQueuePair::enter_error() {
  if (state_ == QpState::err || killed_) return;
  state_ = QpState::err;
  finish_updates();
  flush_at_ = world_.now() + world_.latency();
  world_.wake(*this, flush_at_);
  world_.wake_peers_of(*this);
}

void SimQueuePair::flush() {
  if (options_.shared_receives != nullptr && !end_reported_) {
    end_reported_ = true;
    Wc wc{.wr_id = kNoReceive, .status = WcStatus::wr_flush_err, .opcode = Opcode::recv};
    wc.qp_num = qp_num_;
    wc.tag = options_.tag;
    push({wc, this, false, sends_.retired, true});
  }
  flush_sends();
  while (!own_receives_.is_empty()) {
    complete_receive({.wr_id = own_receives_.oldest().wr_id, .status = WcStatus::wr_flush_err});
  }
}

void SimQueuePair::complete_send(const SendSlot& slot, WcStatus status, std::uint64_t end) {
  Wc wc;
  wc.wr_id = slot.wr.wr_id;
  wc.status = status;
  wc.opcode = slot.wr.opcode;
  wc.qp_num = qp_num_;
  wc.bytes = static_cast<std::uint32_t>(slot.bytes);
  wc.memory_gone = slot.memory_gone;
  push({wc, this, false, end, status != WcStatus::success});
}

void SimQueuePair::complete_receive(const Wc& wc, bool solicited) {
  const bool apart = options_.short_apart && wc.status == WcStatus::success && !wc.has_imm && !wc.has_grh &&
                     wc.bytes <= device_.capabilities().max_inline;
  const auto* buffer = reinterpret_cast<const std::byte*>(receives_.oldest().sge.addr);
  receives_.use(1);
  if (options_.shared_receives != nullptr)
    static_cast<SimReceiveQueue*>(options_.shared_receives)->look_at_limit();
  ++received_;
  ++unpolled_;
  Cqe cqe{wc, this, true, 0, solicited || wc.status != WcStatus::success};
  cqe.wc.qp_num = qp_num_;
  cqe.wc.tag = options_.tag;
  if (apart) cqe.wc.apart = buffer;  // valid until the completion is polled
  if (cqe.wc.opcode == Opcode::send) cqe.wc.opcode = Opcode::recv;
  push(cqe);
}

void SimQueuePair::polled(bool receive, std::uint64_t send_end, std::uint32_t /*always one receive*/) {
  if (receive) {
    --unpolled_;
    receives_.freed(1);
  } else {
    sends_.freed = send_end;
  }
}

void SimQueuePair::push(const Cqe& cqe) {
  world_.completed(cqe.wc);
  if (holding_) {
    held_.push_back(cqe);
  } else {
    cq_.push(cqe);
  }
}

bool SimQueuePair::may_hold_messages(std::uint64_t mark) const {
  return holding_ || (world_.options().hides_completions && !cq_.has_passed(mark));
}

void SimQueuePair::release_completions() {
  holding_ = false;
  for (const Cqe& cqe : held_) cq_.push(cqe);
  held_.clear();
}

void SimQueuePair::kill(WcStatus seen_by_peers) {
  finish_updates();
  killed_ = true;
  seen_by_peers_ = seen_by_peers;
  world_.wake_peers_of(*this);
}

}  // namespace rdma_rpc::fabric
