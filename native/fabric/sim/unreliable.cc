// Implements UC and UD. A request completes when its packets have left. The world's seed then decides whether
// each of them arrives. Like a NIC, this code drops packets that do not fit, without an error. This file is
// part of SimQueuePair.
#include <algorithm>
#include <cstring>

#include "fabric/sim/queue_pair.h"
#include "fabric/software/requests.h"

namespace rdma_rpc::fabric {
namespace {

void put_be(std::byte* to, std::uint32_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(value >> 8 * (bytes - 1 - i));
}

/// Writes the header in front of a datagram, as on InfiniBand.
void write_grh(const SimMessage& message, std::byte* to) {
  constexpr std::uint32_t kVersion6 = 6u << 28, kNextHeader = 0x1b;
  put_be(to, kVersion6, 4);
  put_be(to + 4, static_cast<std::uint32_t>(message.bytes.size()), 2);
  put_be(to + 6, kNextHeader, 1);
  put_be(to + 7, message.hop_limit, 1);
  std::copy(message.source.begin(), message.source.end(), to + kGrhSourceGid);
  std::copy(message.destination.begin(), message.destination.end(), to + kGrhDestinationGid);
}

}  // namespace

/// Sends the packets of a request.
WcStatus SimQueuePair::dispatch(const SendSlot& slot) {
  if (!gather_ok(slot)) return WcStatus::loc_prot_err;
  const SendWr& wr = slot.wr;
  auto message = std::make_shared<SimMessage>();
  message->opcode = wr.opcode;
  message->solicited = wr.solicited;
  message->imm = wr.imm;
  message->source_qp = qp_num_;
  message->bytes.resize(slot.bytes);
  gather(slot, reinterpret_cast<std::uintptr_t>(message->bytes.data()));
  if (options_.type == QpType::uc) {
    message->remote_addr = wr.remote_addr;
    message->rkey = wr.rkey;
    if (peer_ != nullptr) transmit(*peer_, message);
    return WcStatus::success;
  }
  const AhAttr& to = wr.ud.ah->attr();
  message->qkey = (wr.ud.remote_qkey >> 31) != 0 ? options_.qkey : wr.ud.remote_qkey;
  message->hop_limit = to.hop_limit;
  message->source = device_.gid();
  message->destination = to.gid;
  if (is_multicast(to.gid)) {
    if (wr.ud.remote_qpn != kMulticastQpn) return WcStatus::success;
    for (const auto& [number, qp] : world_.queue_pairs()) {
      if (std::count(qp->groups_.begin(), qp->groups_.end(), to.gid) != 0) transmit(*qp, message);
    }
    return WcStatus::success;
  }
  SimQueuePair* target = world_.find(wr.ud.remote_qpn);
  if (target != nullptr && target->device_.gid() == to.gid) transmit(*target, message);
  return WcStatus::success;
}

void SimQueuePair::transmit(SimQueuePair& to, const std::shared_ptr<const SimMessage>& message) {
  const std::size_t mtu = device_.capabilities().max_datagram_bytes;
  std::size_t offset = 0;
  do {
    const std::size_t bytes = std::min(mtu, message->bytes.size() - offset);
    for (std::uint32_t copies = world_.packet_copies(qp_num_); copies > 0; --copies) {
      if (to.overflows(*message)) continue;
      SimPacket packet{world_.now() + world_.packet_delay(), message, offset, bytes};
      const auto later = std::upper_bound(
          to.inbox_.begin(), to.inbox_.end(), packet,
          [](const SimPacket& a, const SimPacket& b) { return a.arrives_at < b.arrives_at; });
      world_.wake(to, packet.arrives_at);
      to.inbox_.insert(later, std::move(packet));
    }
    offset += bytes;
  } while (offset < message->bytes.size());
}

/// Immediate mode: returns whether the packets before this datagram need all receives. Without this check, a
/// batch of datagrams to many queue pairs would be stored for each of them.
bool SimQueuePair::overflows(const SimMessage& message) const {
  if (options_.type != QpType::ud || world_.scheduled()) return false;
  return message.qkey != options_.qkey || inbox_.size() >= receives_.unused();
}

void SimQueuePair::take_packets() {
  while (!inbox_.empty() && inbox_.front().arrives_at <= world_.now()) {
    const SimPacket packet = std::move(inbox_.front());
    inbox_.pop_front();
    if (state_ == QpState::reset || state_ == QpState::init || state_ == QpState::err) continue;
    if (options_.type == QpType::ud) {
      take_datagram(*packet.message);
    } else {
      take_part(packet);
    }
  }
}

void SimQueuePair::take_datagram(const SimMessage& message) {
  if (message.qkey != options_.qkey || receives_.is_empty()) return;
  const Sge& sge = receives_.oldest().sge;
  const std::size_t bytes = kGrhBytes + message.bytes.size();
  if (!can_receive(bytes)) return;
  auto* const to = reinterpret_cast<std::byte*>(sge.addr);
  std::fill_n(to, kGrhBytes, std::byte{0});
  write_grh(message, to);
  std::copy(message.bytes.begin(), message.bytes.end(), to + kGrhBytes);
  complete_message(message, bytes);
}

/// Receives a packet of a UC message. When the packet does not continue where the last one ended, the message
/// in progress is dropped. The packet is then used only if it is the first of another message.
void SimQueuePair::take_part(const SimPacket& packet) {
  if (peer_ == nullptr || peer_->qp_num_ != packet.message->source_qp) return;
  if (packet.is_first()) assembly_ = {packet.message, 0};
  if (assembly_.message != packet.message || assembly_.next != packet.offset) return assembly_ = {}, void();
  assembly_.next += packet.bytes;
  const SimMessage& message = *packet.message;
  if (software::is_write(message.opcode)) {
    // Each packet of a WRITE is written when it arrives.
    if (!write_part(packet)) return assembly_ = {}, void();
  }
  if (!packet.is_last()) return;
  const std::shared_ptr<const SimMessage> whole = std::move(assembly_.message);
  assembly_ = {};
  if (message.opcode == Opcode::rdma_write || receives_.is_empty()) return;
  const bool sends = software::is_send(message.opcode);
  if (sends && !can_receive(message.bytes.size())) return;
  if (sends && !message.bytes.empty())
    std::memcpy(reinterpret_cast<void*>(receives_.oldest().sge.addr), message.bytes.data(),
                message.bytes.size());
  complete_message(message, message.bytes.size());
}

bool SimQueuePair::write_part(const SimPacket& packet) {
  const SimMessage& message = *packet.message;
  if (packet.bytes == 0) return true;
  const std::uint64_t to = message.remote_addr + packet.offset;
  software::KeyTable& keys = device_.protection.keys;
  // The first packet names the whole range.
  const std::uint64_t bytes = packet.is_first() ? message.bytes.size() : packet.bytes;
  if (!keys.remote_ok(message.rkey, qp_num_, to, bytes, access_remote_write)) return false;
  if (!keys.is_revoked(message.rkey))
    std::memcpy(reinterpret_cast<void*>(to), message.bytes.data() + packet.offset, packet.bytes);
  return true;
}

/// Returns whether the oldest receive can take that many bytes. If the receive is too short or not writable,
/// it fails, and so does the queue pair.
bool SimQueuePair::can_receive(std::size_t bytes) {
  const RecvWr& receive = receives_.oldest();
  WcStatus status = world_.faults.match(Opcode::recv, qp_num_, &device_);
  if (bytes > receive.sge.length) status = WcStatus::loc_len_err;
  if (status == WcStatus::success && !device_.protection.keys.local_ok(receive.sge, access_local_write))
    status = WcStatus::loc_prot_err;
  if (status == WcStatus::success) return true;
  complete_receive({.wr_id = receive.wr_id, .status = status});
  enter_error();
  return false;
}

void SimQueuePair::complete_message(const SimMessage& message, std::size_t bytes) {
  const bool has_imm = message.opcode != Opcode::send;
  const bool written = message.opcode == Opcode::rdma_write_with_imm;
  const bool datagram = options_.type == QpType::ud;
  ++world_.counters.carried_out[static_cast<std::size_t>(Opcode::recv)];
  complete_receive({.wr_id = receives_.oldest().wr_id,
                    .opcode = written ? Opcode::recv_rdma_with_imm : Opcode::recv,
                    .has_imm = has_imm,
                    .has_grh = datagram,
                    .bytes = static_cast<std::uint32_t>(bytes),
                    .imm = has_imm ? message.imm : 0,
                    .src_qp = datagram ? message.source_qp : 0},
                   message.solicited);
}

std::string SimQueuePair::attach_multicast(const Gid& group) {
  if (!device_.capabilities().multicast) return device_.capabilities().why_not(Feature::multicast);
  if (options_.type != QpType::ud) return "sim: only a UD queue pair can be attached to a multicast group";
  if (!is_multicast(group)) return "sim: the GID of a multicast group begins with ff";
  if (std::count(groups_.begin(), groups_.end(), group) == 0) groups_.push_back(group);
  return {};
}

std::string SimQueuePair::detach_multicast(const Gid& group) {
  return std::erase(groups_, group) != 0 ? "" : "sim: the queue pair is not attached to that group";
}

}  // namespace rdma_rpc::fabric
