// See rxe.h.
#include "fabric/verbs/soft/rxe.h"

#include <algorithm>
#include <string>

#include "fabric/verbs/device.h"
#include "fabric/verbs/queue/queue_pair.h"

namespace rdma_rpc::fabric::verbs::soft {
namespace {

/// A size that fits one packet on every network.
constexpr std::uint32_t kOnePacket = 256;
constexpr std::uint32_t kRingAfterS = 1;
/// The kernel's IB_WC_WITH_INVALIDATE, which the library calls IBV_WC_IP_CSUM_OK.
constexpr unsigned kKernelWithInvalidate = 1u << 2;

bool is_packet(Opcode opcode) { return opcode != Opcode::bind_mw && opcode != Opcode::local_inv; }

bool is_long_write(const SendWr& request) {
  if (request.opcode != Opcode::rdma_write) return false;
  std::uint64_t bytes = 0;
  for (const Sge& sge : request.sges) bytes += sge.length;
  return bytes > kOnePacket;
}

}  // namespace

std::size_t Rxe::may_post(std::span<const SendWr> requests) const {
  if (!pending_.empty()) return 0;
  const WorkQueue& sends = qp_.sends();
  bool packet = sends.device_has(last_packet_), long_write = sends.device_has(last_long_write_);
  std::size_t count = 0;
  for (; count < requests.size() && !long_write; ++count) {
    const SendWr& request = requests[count];
    if (packet && request.opcode == Opcode::bind_mw) break;
    packet = packet || is_packet(request.opcode);
    long_write = is_long_write(request);
  }
  return count;
}

void Rxe::amend(std::span<const SendWr> requests, std::uint32_t first, std::span<ibv_send_wr> chain) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::uint32_t number = first + static_cast<std::uint32_t>(i);
    if (is_packet(requests[i].opcode)) last_packet_ = number;
    if (!is_long_write(requests[i])) continue;
    last_long_write_ = number;
    // The request is made signaled, because the next request waits for it.
    chain[i].send_flags |= IBV_SEND_SIGNALED;
  }
}

void Rxe::hold(const SendWr& request) {
  WorkQueue& sends = qp_.sends();
  // If nothing else reports that the awaited packet is acknowledged, an empty WRITE must do so.
  const bool tells = sends.at(last_packet_).signaled || sends.device_has(last_long_write_);
  if (pending_.empty() && !tells) qp_.ask_for_last_packet();
  Pending& entry = pending_.emplace_back();
  entry.opcode = request.opcode;
  entry.long_write = is_long_write(request);
  entry.sges.resize(std::max<std::size_t>(request.sges.size(), 1));
  sends.push_pending(qp_.prepare(request, entry.wr, entry.sges.data()));
  // The request is made signaled, because a bind behind it may wait for it.
  entry.wr.send_flags |= IBV_SEND_SIGNALED;
  if ((entry.wr.send_flags & IBV_SEND_INLINE) == 0) return;
  // The bytes are copied, because the caller may reuse them when post_send() returns.
  for (const ibv_sge& sge : std::span(entry.wr.sg_list, static_cast<std::size_t>(entry.wr.num_sge))) {
    const auto* from = reinterpret_cast<const std::byte*>(sge.addr);
    entry.inline_data.insert(entry.inline_data.end(), from, from + sge.length);
  }
  entry.sges[0] = {reinterpret_cast<std::uintptr_t>(entry.inline_data.data()),
                   static_cast<std::uint32_t>(entry.inline_data.size()), 0};
  entry.wr.num_sge = entry.inline_data.empty() ? 0 : 1;
}

void Rxe::release() {
  WorkQueue& sends = qp_.sends();
  while (!pending_.empty()) {
    Pending& entry = pending_.front();
    const bool binds = entry.wr.opcode == IBV_WR_BIND_MW;
    if (sends.device_has(last_long_write_) || (binds && sends.device_has(last_packet_))) return;
    const std::uint32_t number = sends.release();
    entry.wr.wr_id = qp_.id_of(number);
    if (is_packet(entry.opcode)) last_packet_ = number;
    if (entry.long_write) last_long_write_ = number;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(qp_.get(), &entry.wr, &bad); error != 0) {
      sends.at(number).status = WcStatus::general_err;
      sends.rewind(number);
      return qp_.fail(qp_.why_not_posted(error));
    }
    // The next bind of this window starts from this key.
    if (binds) entry.wr.bind_mw.mw->rkey = entry.wr.bind_mw.rkey;
    pending_.pop_front();
  }
}

std::uint32_t Rxe::invalidated_key(const ibv_wc& completion) const {
  if ((completion.wc_flags & kKernelWithInvalidate) == 0) return 0;
  const Window* window = qp_.device().windows().find(completion.invalidated_rkey);
  return window != nullptr && window->queue_pair() == &qp_ ? completion.invalidated_rkey : 0;
}

/// Returns why the longest packets of the connection can no longer be sent, or "" when they can.
std::string Rxe::why_too_long() {
  // A connection keeps its path MTU, so the device is asked once.
  if (path_mtu_ == 0) {
    ibv_qp_attr made{};
    ibv_qp_init_attr init{};
    if (ibv_query_qp(qp_.get(), &made, IBV_QP_PATH_MTU, &init) != 0) return "";
    path_mtu_ = static_cast<std::uint32_t>(made.path_mtu);
  }
  Device& device = qp_.device();
  const std::uint32_t now = device.port_mtu();
  if (now == 0 || path_mtu_ <= now) return "";
  const auto bytes = [](std::uint32_t mtu) { return std::to_string(128u << mtu) + " bytes"; };
  return device.capabilities().name + " sends packets of up to " + bytes(now) +
         " now, and this connection needs " + bytes(path_mtu_) +
         ": the MTU of its network interface has become smaller; a new connection uses the new MTU";
}

/// Ends the queue pair when the oldest request has not moved because the interface has a smaller MTU now.
/// Otherwise rings the doorbell again with an empty WRITE; behind a long WRITE, this happens only after half
/// of the time of all retries.
void Rxe::second(std::uint32_t waits_s, std::uint32_t limit_s) {
  WorkQueue& sends = qp_.sends();
  if (waits_s <= kRingAfterS) return;
  if (const std::string why = why_too_long(); !why.empty()) return qp_.fail(why);
  if (sends.device_has(last_long_write_) && waits_s <= limit_s / 2) return;
  if (static_cast<std::int32_t>(sends.head() - behind_ring_) > 0) rings_ = 0;
  if (rings_ == kRingsMax || !qp_.has_room_for_internal()) return;
  // The completion of this WRITE reports that all requests before it are complete, too.
  qp_.post_empty_write(sends.newest(), IBV_SEND_SIGNALED);
  behind_ring_ = sends.newest() + 1;
  ++rings_;
}

}  // namespace rdma_rpc::fabric::verbs::soft
