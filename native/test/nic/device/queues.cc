// The functions of completion queues, shared receive queues and queue pairs that replace those of libibverbs;
// see nic.h.
#include <algorithm>
#include <bit>

#include "nic/device/calls.h"

namespace rdma_rpc::nic {
namespace {

/// Takes resources for the READs of the peer when a queue pair goes to RTR. Returns false when too few are
/// left.
bool reserve_reads(Qp& qp, int count) {
  Nic& nic = qp.nic();
  const int all = nic.profile.attributes.max_res_rd_atom;  // 0 when the driver does not report it
  if (all > 0 && nic.reads_reserved + count > all) return false;
  nic.reads_reserved += count;
  return true;
}

bool concerns_queue_pair(ibv_event_type type) {
  return type == IBV_EVENT_SQ_DRAINED || type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

int move(Qp& qp, const ibv_qp_attr& attr, int mask) {
  Nic& nic = qp.nic();
  const ibv_qp_state next = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : qp.state;
  if (next == IBV_QPS_INIT && attr.pkey_index >= nic.profile.pkeys) return EINVAL;
  if ((mask & IBV_QP_QKEY) != 0) qp.attributes.qkey = attr.qkey;
  if (next == IBV_QPS_RTR && qp.qp_type != IBV_QPT_UD) {
    if (nic.refuses_rtr != 0) return nic.refuses_rtr;
    const std::uint32_t index = attr.ah_attr.grh.sgid_index;
    const auto has_it = [index](const ibv_gid_entry& gid) { return gid.gid_index == index; };
    if (attr.ah_attr.is_global != 0 && std::none_of(nic.gids.begin(), nic.gids.end(), has_it)) return EINVAL;
    if (attr.ah_attr.is_global != 0 && !nic.reaches(attr.ah_attr.grh.dgid)) return EHOSTUNREACH;
    if (!reserve_reads(qp, attr.max_dest_rd_atomic)) return ENOMEM;
    qp.attributes.dest_qp_num = attr.dest_qp_num;
    qp.attributes.ah_attr = attr.ah_attr;
    qp.attributes.max_dest_rd_atomic = attr.max_dest_rd_atomic;
    qp.attributes.path_mtu = attr.path_mtu;
  }
  if (next == IBV_QPS_RTS && (mask & IBV_QP_TIMEOUT) != 0) {
    qp.attributes.timeout = attr.timeout;
    qp.attributes.retry_cnt = attr.retry_cnt;
    qp.attributes.rnr_retry = attr.rnr_retry;
  }
  if (next == IBV_QPS_ERR) {
    qp.fail();
  } else {
    qp.state = next;
  }
  if (next == IBV_QPS_RTS) qp.go_on();
  if (next == IBV_QPS_RTR) {
    for (const auto& [number, other] : queue_pairs()) {
      if (other->attributes.dest_qp_num == qp.qp_num && other->state == IBV_QPS_RTS) other->go_on();
    }
  }
  if (next == IBV_QPS_SQD) {
    ibv_async_event event{};
    event.event_type = IBV_EVENT_SQ_DRAINED;
    event.element.qp = &qp;
    report(qp.context, event);
  }
  return 0;
}

}  // namespace
}  // namespace rdma_rpc::nic

using namespace rdma_rpc::nic;

IN_FRONT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* channel = new Channel{};
  channel->context = context;
  channel->fd = semaphore();
  return channel;
}
IN_FRONT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ::close(channel->fd);
  delete static_cast<Channel*>(channel);
  return 0;
}
IN_FRONT int ibv_get_cq_event(ibv_comp_channel* handle, ibv_cq** cq, void** owner) {
  auto& channel = *static_cast<Channel*>(handle);
  if (!was_rung(channel.fd)) return -1;
  const LockGuard guard(lock());
  *cq = channel.events.front();
  channel.events.pop_front();
  *owner = (*cq)->cq_context;
  ++static_cast<Cq*>(*cq)->unacknowledged;
  return 0;
}
IN_FRONT void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  const LockGuard guard(lock());
  static_cast<Cq*>(cq)->unacknowledged -= count;
}

IN_FRONT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel,
                               int vector) {
  const LockGuard guard(lock());
  Nic& nic = commanded(context);
  if (entries > nic.profile.attributes.max_cqe) return refuse<ibv_cq>(EINVAL);
  if (nic.live.completion_queues >= static_cast<std::uint32_t>(nic.profile.attributes.max_cq))
    return refuse<ibv_cq>(ENOMEM);
  ++nic.live.completion_queues;
  if (channel != nullptr) nic_of(context).vectors.push_back(vector);
  auto* cq = new Cq{};
  cq->context = context;
  cq->cq_context = owner;
  cq->channel = channel;
  cq->cqe = nic.profile.rounds_queues
                ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(entries) + 1) - 1)
                : entries;
  return cq;
}
IN_FRONT int ibv_destroy_cq(ibv_cq* cq) {
  const LockGuard guard(lock());
  Nic& nic = commanded(cq->context);
  --nic.live.completion_queues;
  if (static_cast<Cq*>(cq)->unacknowledged != 0)
    nic.misuse.push_back("a completion queue is destroyed with events that are not acknowledged");
  for (const auto& [number, qp] : queue_pairs()) {
    if (qp->send_cq == cq || qp->recv_cq == cq)
      nic.misuse.push_back("a completion queue is destroyed that a queue pair uses");
  }
  if (auto* channel = static_cast<Channel*>(cq->channel); channel != nullptr)
    take_back(channel->events, channel->fd, [cq](const ibv_cq* each) { return each == cq; });
  delete static_cast<Cq*>(cq);
  return 0;
}

IN_FRONT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  const LockGuard guard(lock());
  const ibv_device_attr& limits = commanded(pd->context).profile.attributes;
  if (limits.max_srq == 0) return refuse<ibv_srq>(EOPNOTSUPP);
  if (init->attr.max_wr > static_cast<std::uint32_t>(limits.max_srq_wr)) return refuse<ibv_srq>(EINVAL);
  auto* srq = new Srq{};
  srq->context = pd->context;
  srq->pd = pd;
  srq->size = init->attr.max_wr;
  return srq;
}
IN_FRONT int ibv_modify_srq(ibv_srq* handle, ibv_srq_attr* attributes, int) {
  const LockGuard guard(lock());
  auto& srq = *static_cast<Srq*>(handle);
  if (attributes->srq_limit > srq.size) return EINVAL;
  srq.limit = attributes->srq_limit;
  return 0;
}
IN_FRONT int ibv_destroy_srq(ibv_srq* srq) {
  const LockGuard guard(lock());
  Nic& nic = commanded(srq->context);
  for (const auto& [number, qp] : queue_pairs()) {
    if (qp->srq == srq) nic.misuse.push_back("a shared receive queue is destroyed that a queue pair uses");
  }
  auto& context = *static_cast<Context*>(srq->context);
  take_back(context.events, context.async_fd, [srq](const ibv_async_event& event) {
    return event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq;
  });
  delete static_cast<Srq*>(srq);
  return 0;
}

IN_FRONT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  const LockGuard guard(lock());
  Nic& nic = commanded(pd->context);
  if (!nic.profile.has_rc && init->qp_type == IBV_QPT_RC) return refuse<ibv_qp>(EOPNOTSUPP);
  if ((!nic.profile.has_uc && init->qp_type == IBV_QPT_UC) ||
      (!nic.profile.has_ud && init->qp_type == IBV_QPT_UD))
    return refuse<ibv_qp>(EOPNOTSUPP);
  const ibv_device_attr& limits = nic.profile.attributes;
  const auto most = static_cast<std::uint32_t>(limits.max_qp_wr),
             entries = static_cast<std::uint32_t>(limits.max_sge);
  if (init->cap.max_send_wr > most || init->cap.max_recv_wr > most || init->cap.max_send_sge > entries ||
      init->cap.max_recv_sge > entries)
    return refuse<ibv_qp>(EINVAL);
  if (init->cap.max_inline_data > nic.profile.inline_max) return refuse<ibv_qp>(EINVAL);
  if (nic.live.queue_pairs >= static_cast<std::uint32_t>(nic.profile.attributes.max_qp))
    return refuse<ibv_qp>(ENOMEM);
  ++nic.live.queue_pairs;
  nic.made.push_back(init->cap);
  auto* qp = new Qp{};
  qp->context = pd->context;
  qp->pd = pd;
  qp->send_cq = init->send_cq;
  qp->recv_cq = init->recv_cq;
  qp->srq = init->srq;
  qp->cap = init->cap;
  qp->all_signaled = init->sq_sig_all != 0;
  qp->qp_type = init->qp_type;
  static std::uint32_t next = 16;
  qp->qp_num = next++;
  queue_pairs()[qp->qp_num] = qp;
  return qp;
}
IN_FRONT int ibv_modify_qp(ibv_qp* handle, ibv_qp_attr* attributes, int mask) {
  const LockGuard guard(lock());
  auto& qp = *static_cast<Qp*>(handle);
  Nic& nic = commanded(qp.context);
  if (nic.told) nic.told(*attributes, mask);
  return move(qp, *attributes, mask);
}
IN_FRONT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int, ibv_qp_init_attr*) {
  commanded(qp->context);
  attributes->qp_state = qp->state;
  attributes->path_mtu = static_cast<const Qp*>(qp)->attributes.path_mtu;
  return 0;
}
IN_FRONT int ibv_destroy_qp(ibv_qp* handle) {
  const LockGuard guard(lock());
  auto* qp = static_cast<Qp*>(handle);
  Nic& nic = commanded(qp->context);
  if (!qp->groups.empty()) return EBUSY;
  qp->fail();
  --nic.live.queue_pairs;
  nic.reads_reserved -= qp->attributes.max_dest_rd_atomic;
  // Removes its completions, as mlx5_cq_clean() and others do.
  for (ibv_cq* cq : {qp->send_cq, qp->recv_cq}) {
    std::erase_if(static_cast<Cq*>(cq)->completions,
                  [qp](const Completion& each) { return each.wc.qp_num == qp->qp_num; });
  }
  for (auto& [index, mw] : keys().windows) {
    if (mw->qp == qp) mw->qp = nullptr;
  }
  auto& context = *static_cast<Context*>(qp->context);
  take_back(context.events, context.async_fd, [qp](const ibv_async_event& event) {
    return concerns_queue_pair(event.event_type) && event.element.qp == qp;
  });
  queue_pairs().erase(qp->qp_num);
  delete qp;
  return 0;
}
