// The functions in front of libibverbs; see nic.h.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "nic/device/huge_pages.h"
#include "nic/device/objects.h"

// Macros and inline functions of the header hide the library's functions.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace rdma_rpc::nic {
namespace {

Machine* machine = nullptr;

using Guard = std::lock_guard<std::recursive_mutex>;

Nic& nic_of(ibv_context* context) { return *static_cast<Context*>(context)->nic; }

/// Counts a command, and returns the NIC that it is for.
Nic& commanded(ibv_context* context) {
  Nic& nic = nic_of(context);
  ++nic.commands;
  return nic;
}

int semaphore() { return ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE); }

void ring(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

bool was_rung(int fd) {
  std::uint64_t value = 0;
  return ::read(fd, &value, sizeof value) == sizeof value;
}

template <typename T>
T* refuse(int error) {
  errno = error;
  return nullptr;
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  const Guard guard(lock());
  Nic& nic = commanded(pd->context);
  if (!nic.profile.allocates_windows) return refuse<ibv_mw>(EOPNOTSUPP);
  if (nic.live.windows >= static_cast<std::uint32_t>(nic.profile.attributes.max_mw))
    return refuse<ibv_mw>(ENOMEM);
  ++nic.live.windows;
  auto* mw = new Mw;
  mw->context = pd->context;
  mw->pd = pd;
  mw->type = type;
  const std::uint32_t index = keys().next++;
  mw->rkey = index << 8;
  keys().windows[index] = mw;
  return mw;
}

int dealloc_mw(ibv_mw* handle) {
  const Guard guard(lock());
  --commanded(handle->context).live.windows;
  keys().windows.erase(handle->rkey >> 8);
  delete static_cast<Mw*>(handle);
  return 0;
}

/// Resources for the READs of the peer, which the device shares out when a queue pair goes to RTR.
bool reserve_reads(Qp& qp, int count) {
  Nic& nic = qp.nic();
  if (nic.reads_reserved + count > nic.profile.attributes.max_res_rd_atom) return false;
  nic.reads_reserved += count;
  return true;
}

int move(Qp& qp, const ibv_qp_attr& attr, int mask) {
  Nic& nic = qp.nic();
  const ibv_qp_state next = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : qp.state;
  if (next == IBV_QPS_RTR) {
    if (nic.refuses_rtr != 0) return nic.refuses_rtr;
    const std::uint32_t index = attr.ah_attr.grh.sgid_index;
    const auto has_it = [index](const ibv_gid_entry& gid) { return gid.gid_index == index; };
    if (attr.ah_attr.is_global != 0 && std::none_of(nic.gids.begin(), nic.gids.end(), has_it)) return EINVAL;
    if (!reserve_reads(qp, attr.max_dest_rd_atomic)) return ENOMEM;
    qp.attributes.dest_qp_num = attr.dest_qp_num;
    qp.attributes.ah_attr = attr.ah_attr;
    qp.attributes.max_dest_rd_atomic = attr.max_dest_rd_atomic;
    qp.attributes.path_mtu = attr.path_mtu;
  }
  if (next == IBV_QPS_ERR) {
    qp.fail();
  } else {
    qp.state = next;
  }
  if (next == IBV_QPS_RTS) qp.go_on();
  if (next == IBV_QPS_SQD) {
    ibv_async_event event{};
    event.event_type = IBV_EVENT_SQ_DRAINED;
    event.element.qp = &qp;
    report(qp.context, event);
  }
  return 0;
}

}  // namespace

void report(ibv_context* handle, const ibv_async_event& event) {
  auto& context = *static_cast<Context*>(handle);
  context.events.push_back(event);
  ring(context.async_fd);
}

std::recursive_mutex& lock() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

Keys& keys() {
  static auto& all = *new Keys;
  return all;
}

std::unordered_map<std::uint32_t, Qp*>& queue_pairs() {
  static auto& all = *new std::unordered_map<std::uint32_t, Qp*>;
  return all;
}

Nic::Nic(const Profile& wanted) : profile(wanted) {
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  std::snprintf(device.name, sizeof device.name, "%s", profile.name.c_str());
  std::snprintf(device.dev_name, sizeof device.dev_name, "uverbs-%s", profile.name.c_str());
  port.state = IBV_PORT_ACTIVE;
  port.max_mtu = port.active_mtu = IBV_MTU_4096;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.max_msg_sz = 1u << 30;
  port.gid_tbl_len = 16;
}

void Nic::set_gid(std::uint32_t index, std::string_view ipv4) {
  const Guard guard(lock());
  std::erase_if(gids, [index](const ibv_gid_entry& gid) { return gid.gid_index == index; });
  if (ipv4.empty()) return;
  ibv_gid_entry gid{};
  gid.gid_index = index;
  gid.port_num = 1;
  gid.gid_type = IBV_GID_TYPE_ROCE_V2;
  gid.gid.raw[10] = gid.gid.raw[11] = 0xff;
  ::inet_pton(AF_INET, std::string(ipv4).c_str(), gid.gid.raw + 12);
  gids.push_back(gid);
}

void Nic::report(ibv_event_type type) {
  const Guard guard(lock());
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = 1;
  for (Context* context : contexts) nic::report(context, event);
}

Machine::Machine() { machine = this; }
Machine::~Machine() { machine = nullptr; }
Machine* Machine::current() { return machine; }

Nic& Machine::add(const Profile& profile) {
  Nic& nic = *nics_.emplace_back(std::make_shared<Nic>(profile));
  nic.set_gid(1, "10.0.0." + std::to_string(nics_.size()));
  return nic;
}

}  // namespace rdma_rpc::nic

using namespace rdma_rpc::nic;

#define IN_FRONT extern "C" __attribute__((visibility("default")))

IN_FRONT ibv_device** ibv_get_device_list(int* count) {
  const std::size_t all = machine == nullptr ? 0 : machine->nics().size();
  auto** list = new ibv_device*[all + 1]();
  for (std::size_t i = 0; i < all; ++i) list[i] = &machine->nics()[i]->device;
  if (count != nullptr) *count = static_cast<int>(all);
  return list;
}
IN_FRONT void ibv_free_device_list(ibv_device** list) { delete[] list; }
IN_FRONT const char* ibv_get_device_name(ibv_device* device) { return device->name; }
IN_FRONT int ibv_fork_init() { return 0; }
IN_FRONT ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

IN_FRONT ibv_context* ibv_open_device(ibv_device* device) {
  const Guard guard(lock());
  for (const auto& nic : machine->nics()) {
    if (&nic->device != device) continue;
    auto* context = new Context{};
    context->device = device;
    context->nic = nic;
    context->cmd_fd = -1;
    context->async_fd = semaphore();
    context->num_comp_vectors = 1;
    context->ops.alloc_mw = alloc_mw;
    context->ops.dealloc_mw = dealloc_mw;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.post_srq_recv = post_srq_recv;
    nic->contexts.push_back(context);
    ++nic->commands;
    return context;
  }
  return refuse<ibv_context>(ENODEV);
}

IN_FRONT int ibv_close_device(ibv_context* handle) {
  const Guard guard(lock());
  auto* context = static_cast<Context*>(handle);
  std::erase(context->nic->contexts, context);
  ::close(context->async_fd);
  delete context;
  return 0;
}

IN_FRONT int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  *attributes = commanded(context).profile.attributes;
  return 0;
}

/// As the header's inline function calls it, with room for all of the newer attributes.
IN_FRONT int ibv_query_port(ibv_context* context, std::uint8_t, _compat_ibv_port_attr* attributes) {
  const Guard guard(lock());
  const ibv_port_attr& port = commanded(context).port;
  std::memcpy(static_cast<void*>(attributes), &port, sizeof port);
  return 0;
}

IN_FRONT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most,
                                      std::uint32_t, std::size_t) {
  const Guard guard(lock());
  const auto& gids = commanded(context).gids;
  const std::size_t count = std::min(most, gids.size());
  std::copy_n(gids.begin(), count, entries);
  return static_cast<ssize_t>(count);
}

IN_FRONT int ibv_query_pkey(ibv_context*, std::uint8_t, int index, __be16* pkey) {
  *pkey = index == 0 ? 0xffff : 0;
  return 0;
}

IN_FRONT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  commanded(context);
  auto* pd = new ibv_pd{};
  pd->context = context;
  return pd;
}
IN_FRONT int ibv_dealloc_pd(ibv_pd* pd) {
  delete pd;
  return 0;
}

IN_FRONT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t,
                                  unsigned access) {
  const Guard guard(lock());
  Nic& nic = commanded(pd->context);
  nic.registered.push_back(access);
  if (!nic.registration_errors.empty()) {
    const int error = nic.registration_errors.front();
    nic.registration_errors.pop_front();
    if (error != 0) return refuse<ibv_mr>(error);
  }
  if (HugePages::current() != nullptr && !HugePages::current()->has_all(addr, length))
    return refuse<ibv_mr>(EFAULT);
  if (nic.live.regions >= static_cast<std::uint32_t>(nic.profile.attributes.max_mr))
    return refuse<ibv_mr>(ENOMEM);
  ++nic.live.regions;
  auto* mr = new Mr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = addr;
  mr->length = length;
  mr->access = access;
  const std::uint32_t index = keys().next++;
  mr->lkey = mr->rkey = index << 8;
  keys().regions[index] = mr;
  return mr;
}
IN_FRONT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, reinterpret_cast<std::uintptr_t>(addr),
                          static_cast<unsigned>(access));
}
IN_FRONT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  return refuse<ibv_mr>(EOPNOTSUPP);
}
IN_FRONT int ibv_dereg_mr(ibv_mr* mr) {
  const Guard guard(lock());
  --commanded(mr->context).live.regions;
  keys().regions.erase(mr->lkey >> 8);
  delete static_cast<Mr*>(mr);
  return 0;
}

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
  const Guard guard(lock());
  *cq = channel.events.front();
  channel.events.pop_front();
  *owner = (*cq)->cq_context;
  return 0;
}
IN_FRONT void ibv_ack_cq_events(ibv_cq*, unsigned) {}

IN_FRONT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel,
                               int) {
  const Guard guard(lock());
  ++commanded(context).live.completion_queues;
  auto* cq = new Cq{};
  cq->context = context;
  cq->cq_context = owner;
  cq->channel = channel;
  cq->cqe = entries;
  return cq;
}
IN_FRONT int ibv_destroy_cq(ibv_cq* cq) {
  const Guard guard(lock());
  --commanded(cq->context).live.completion_queues;
  if (cq->channel != nullptr) std::erase(static_cast<Channel*>(cq->channel)->events, cq);
  delete static_cast<Cq*>(cq);
  return 0;
}

IN_FRONT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  commanded(pd->context);
  auto* srq = new Srq{};
  srq->context = pd->context;
  srq->pd = pd;
  srq->size = init->attr.max_wr;
  return srq;
}
IN_FRONT int ibv_modify_srq(ibv_srq* handle, ibv_srq_attr* attributes, int) {
  const Guard guard(lock());
  auto& srq = *static_cast<Srq*>(handle);
  if (attributes->srq_limit > srq.size) return EINVAL;
  srq.limit = attributes->srq_limit;
  return 0;
}
IN_FRONT int ibv_destroy_srq(ibv_srq* srq) {
  commanded(srq->context);
  delete static_cast<Srq*>(srq);
  return 0;
}

IN_FRONT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  const Guard guard(lock());
  Nic& nic = commanded(pd->context);
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
  const Guard guard(lock());
  auto& qp = *static_cast<Qp*>(handle);
  Nic& nic = commanded(qp.context);
  if (nic.told) nic.told(*attributes, mask);
  return move(qp, *attributes, mask);
}
IN_FRONT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int, ibv_qp_init_attr*) {
  commanded(qp->context);
  attributes->qp_state = qp->state;
  return 0;
}
IN_FRONT int ibv_destroy_qp(ibv_qp* handle) {
  const Guard guard(lock());
  auto* qp = static_cast<Qp*>(handle);
  Nic& nic = commanded(qp->context);
  --nic.live.queue_pairs;
  nic.reads_reserved -= qp->attributes.max_dest_rd_atomic;
  // Its completions go with it, as mlx5_cq_clean() and others do.
  for (ibv_cq* cq : {qp->send_cq, qp->recv_cq}) {
    std::erase_if(static_cast<Cq*>(cq)->completions,
                  [qp](const ibv_wc& wc) { return wc.qp_num == qp->qp_num; });
  }
  for (auto& [index, mw] : keys().windows) {
    if (mw->qp == qp) mw->qp = nullptr;
  }
  queue_pairs().erase(qp->qp_num);
  delete qp;
  return 0;
}

IN_FRONT int ibv_get_async_event(ibv_context* handle, ibv_async_event* event) {
  auto& context = *static_cast<Context*>(handle);
  if (!was_rung(context.async_fd)) return -1;
  const Guard guard(lock());
  *event = context.events.front();
  context.events.pop_front();
  return 0;
}
IN_FRONT void ibv_ack_async_event(ibv_async_event*) {}
