// Implements the queues of the NIC: requests and receives that are posted, completions that are polled, and
// the conditions for which a request has to wait. See nic.h.
#include <algorithm>
#include <utility>

#include "fabric/suite/allocation_count.h"
#include "nic/device/calls.h"

namespace rdma_rpc::nic {
namespace {

/// Holds the lock. Memory that is allocated during this time does not count as the plug-in's memory.
class Guard {
 public:
  ~Guard() { fabric::test::forget_allocations_since(before_); }

 private:
  std::lock_guard<std::recursive_mutex> lock_{lock()};
  std::uint64_t before_ = fabric::test::allocations_so_far();
};

ibv_wc_opcode opcode_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return IBV_WC_SEND;
  }
}

/// Accepts receives while the queue has room. Returns the first receive that is refused, or null.
ibv_recv_wr* take(std::deque<Receive>& receives, std::size_t most, ibv_recv_wr* wr) {
  for (; wr != nullptr && receives.size() < most; wr = wr->next)
    receives.push_back({wr->wr_id, {wr->sg_list, wr->sg_list + wr->num_sge}});
  return wr;
}

Held copy_of(const ibv_send_wr& wr) {
  Held held{wr, {wr.sg_list, wr.sg_list + wr.num_sge}, {}};
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) return held;
  for (const ibv_sge& sge : held.sges) {
    const auto* from = reinterpret_cast<const std::byte*>(sge.addr);
    held.inline_bytes.insert(held.inline_bytes.end(), from, from + sge.length);
  }
  held.sges = {{reinterpret_cast<std::uintptr_t>(held.inline_bytes.data()),
                static_cast<std::uint32_t>(held.inline_bytes.size()), 0}};
  held.wr.num_sge = 1;
  return held;
}

/// Continues the queue pairs whose requests found no receive here.
void receives_came(const ibv_qp* at, const ibv_srq* on) {
  for (const auto& [number, qp] : queue_pairs()) {
    if (qp->held.empty() || qp->state != IBV_QPS_RTS) continue;
    const Qp* peer = peer_of(*qp);
    if (peer != nullptr && (peer == at || (on != nullptr && peer->srq == on))) qp->go_on();
  }
}

}  // namespace

ibv_wc completion(const Qp& qp, std::uint64_t wr_id, ibv_wc_status status) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.qp_num = qp.qp_num;
  if (status != IBV_WC_SUCCESS) wc.vendor_err = qp.nic().profile.vendor_err;
  return wc;
}

void Cq::push(const ibv_wc& wc, bool solicited, std::uint64_t send) {
  if (completions.size() >= static_cast<std::size_t>(cqe)) {
    // A completion queue that overruns loses this completion and all later ones.
    if (!std::exchange(overrun, true)) {
      ibv_async_event event{};
      event.event_type = IBV_EVENT_CQ_ERR;
      event.element.cq = this;
      report(context, event);
    }
  }
  if (overrun) return;
  const Profile& profile = nic_of(context).profile;
  completions.push_back({wc, polls + profile.late_polls, send});
  const bool wakes =
      armed == Armed::all || (armed == Armed::solicited && (solicited || wc.status != IBV_WC_SUCCESS));
  if (!wakes || channel == nullptr) return;
  armed = Armed::no;
  for (int i = 0; i < (profile.doubles_events ? 2 : 1); ++i) {
    static_cast<Channel*>(channel)->events.push_back(this);
    ring(channel->fd);
  }
}

void Qp::fail() {
  if (state == IBV_QPS_ERR) return;
  state = IBV_QPS_ERR;
  const bool sends_first = nic().profile.flushes_sends_first;
  if (sends_first) go_on();
  for (const Receive& receive : receives) {
    ibv_wc wc = completion(*this, receive.wr_id, IBV_WC_WR_FLUSH_ERR);
    wc.opcode = IBV_WC_RECV;
    static_cast<Cq*>(recv_cq)->push(wc, false);
  }
  receives.clear();
  if (!sends_first) go_on();
  if (srq != nullptr && nic().profile.reports_last_receive) {
    ibv_async_event event{};
    event.event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
    event.element.qp = this;
    report(context, event);
  }
  if (!nic().profile.peers_notice) return;
  if (Qp* peer = peer_of(*this); peer != nullptr) peer->hear_good_bye();
}

void Qp::hear_good_bye() {
  if (state == IBV_QPS_ERR) return;
  fail();
  ibv_async_event event{};
  event.event_type = IBV_EVENT_QP_FATAL;
  event.element.qp = this;
  report(context, event);
}

bool Qp::carry_out(const ibv_send_wr& wr, std::uint64_t number) {
  const std::optional<ibv_wc_status> status = state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR : execute(*this, wr);
  if (!status) return false;
  ++nic().carried_out[wr.opcode];
  ibv_wc wc = completion(*this, wr.wr_id, *status);
  wc.opcode = opcode_of(wr.opcode);
  if (*status != IBV_WC_SUCCESS || all_signaled || (wr.send_flags & IBV_SEND_SIGNALED) != 0)
    static_cast<Cq*>(send_cq)->push(wc, false, number);
  if (*status != IBV_WC_SUCCESS) fail();
  return true;
}

bool Qp::is_held_up() const {
  if (state == IBV_QPS_ERR) return false;
  // A peer that is still being connected accepts no packet, and the retries come later.
  const auto found = queue_pairs().find(attributes.dest_qp_num);
  if (found != queue_pairs().end() && found->second->state == IBV_QPS_INIT) return true;
  const Qp* peer = peer_of(*this);
  return state == IBV_QPS_SQD || nic().link_lost || (peer != nullptr && peer->nic().link_lost);
}

void Qp::go_on() {
  // A request that fails ends the queue pair, which flushes the rest.
  if (std::exchange(going_on, true)) return;
  while (!held.empty() && !is_held_up()) {
    Held& first = held.front();
    first.wr.sg_list = first.sges.data();
    if (!carry_out(first.wr, first.number)) break;
    held.pop_front();
  }
  going_on = false;
}

int post_send(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) {
  const Guard guard;
  auto& qp = *static_cast<Qp*>(handle);
  for (; wr != nullptr; wr = wr->next) {
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
      std::uint64_t bytes = 0;
      for (int i = 0; i < wr->num_sge; ++i) bytes += wr->sg_list[i].length;
      if (bytes > qp.cap.max_inline_data) return *bad = wr, EINVAL;
    }
    const std::uint32_t entries =
        wr->opcode == IBV_WR_RDMA_READ ? qp.nic().entries_of_reads() : qp.cap.max_send_sge;
    if (wr->num_sge > static_cast<int>(entries)) return *bad = wr, EINVAL;
    if (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_SQD && qp.state != IBV_QPS_ERR)
      return *bad = wr, EINVAL;
    // The queue entry of a request is free again when its completion, or a later one, has been polled.
    if (qp.posted - qp.polled >= qp.cap.max_send_wr) return *bad = wr, ENOMEM;
    const std::uint64_t number = ++qp.posted;
    if (!qp.held.empty() || qp.is_held_up() || !qp.carry_out(*wr, number)) {
      qp.held.push_back(copy_of(*wr));
      qp.held.back().number = number;
    }
    if (wr->opcode == IBV_WR_BIND_MW) wr->bind_mw.mw->rkey = wr->bind_mw.rkey;
  }
  return 0;
}

int post_recv(ibv_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const Guard guard;
  auto& qp = *static_cast<Qp*>(handle);
  if (qp.state == IBV_QPS_RESET) return *bad = wr, EINVAL;
  ibv_recv_wr* refused = take(qp.receives, qp.cap.max_recv_wr, wr);
  if (qp.state == IBV_QPS_ERR) {
    qp.state = IBV_QPS_RTS;
    qp.fail();
  }
  receives_came(&qp, nullptr);
  return refused == nullptr ? 0 : (*bad = refused, ENOMEM);
}

int post_srq_recv(ibv_srq* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const Guard guard;
  auto& srq = *static_cast<Srq*>(handle);
  ibv_recv_wr* refused = take(srq.receives, srq.size, wr);
  receives_came(nullptr, &srq);
  return refused == nullptr ? 0 : (*bad = refused, ENOMEM);
}

int poll_cq(ibv_cq* handle, int entries, ibv_wc* out) {
  const Guard guard;
  auto& cq = *static_cast<Cq*>(handle);
  if (const int error = nic_of(cq.context).poll_error; error != 0) return error;
  ++cq.polls;
  int count = 0;
  for (; count < entries && !cq.completions.empty(); cq.completions.pop_front()) {
    const Completion& first = cq.completions.front();
    if (first.polls > cq.polls) break;
    out[count++] = first.wc;
    const auto found = queue_pairs().find(first.wc.qp_num);
    if (found != queue_pairs().end() && first.send != 0)
      found->second->polled = std::max(found->second->polled, first.send);
  }
  return count;
}

int req_notify_cq(ibv_cq* handle, int solicited_only) {
  const Guard guard;
  auto& cq = *static_cast<Cq*>(handle);
  cq.armed = solicited_only != 0 ? Cq::Armed::solicited : Cq::Armed::all;
  // Completions from now on have an event, so all completions without one must be visible now.
  for (Completion& each : cq.completions) each.polls = 0;
  return 0;
}

}  // namespace rdma_rpc::nic
