// The functions that replace those of libibverbs; see nic.h.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "nic/device/calls.h"
#include "nic/device/huge_pages.h"

// Macros and inline functions of the header hide the library's functions, so they are removed here.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace rdma_rpc::nic {
namespace {

Machine* machine = nullptr;

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  const LockGuard guard(lock());
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
  const LockGuard guard(lock());
  --commanded(handle->context).live.windows;
  keys().windows.erase(handle->rkey >> 8);
  delete static_cast<Mw*>(handle);
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
  device.transport_type = profile.transport;
  std::snprintf(device.name, sizeof device.name, "%s", profile.name.c_str());
  std::snprintf(device.dev_name, sizeof device.dev_name, "uverbs-%s", profile.name.c_str());
  port.state = IBV_PORT_ACTIVE;
  port.max_mtu = port.active_mtu = IBV_MTU_4096;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.max_msg_sz = 1u << 30;
  port.gid_tbl_len = 16;
}

void Nic::set_gid(std::uint32_t index, std::string_view ipv4, unsigned interface) {
  const LockGuard guard(lock());
  std::erase_if(gids, [index](const ibv_gid_entry& gid) { return gid.gid_index == index; });
  if (ipv4.empty()) return;
  ibv_gid_entry gid{};
  gid.gid_index = index;
  gid.port_num = 1;
  gid.ndev_ifindex = interface;
  gid.gid_type = IBV_GID_TYPE_ROCE_V2;
  gid.gid.raw[10] = gid.gid.raw[11] = 0xff;
  ::inet_pton(AF_INET, std::string(ipv4).c_str(), gid.gid.raw + 12);
  gids.push_back(gid);
}

bool Nic::reaches(const ibv_gid& peer) const {
  constexpr unsigned kMappedBits = 96;  // of ::ffff:0:0, in front of an IPv4 address
  const auto own = std::find_if(gids.begin(), gids.end(), [](const auto& gid) { return gid.gid_index == 1; });
  if (reaches_bits == 0 || own == gids.end()) return true;
  for (unsigned bit = 0; bit < kMappedBits + reaches_bits; ++bit) {
    const unsigned mask = 0x80u >> bit % 8;
    if (((own->gid.raw[bit / 8] ^ peer.raw[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

void Nic::report(ibv_event_type type) {
  const LockGuard guard(lock());
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = 1;
  for (int i = 0; i < (profile.doubles_events ? 2 : 1); ++i) {
    for (Context* context : contexts) nic::report(context, event);
  }
}

void Nic::break_queue_pair(std::uint32_t number) {
  const LockGuard guard(lock());
  queue_pairs().at(number)->fail();
}

void Nic::lose_link() {
  const LockGuard guard(lock());
  link_lost = true;
}

void Nic::find_link(std::chrono::milliseconds after) {
  const LockGuard guard(lock());
  link_lost = false;
  std::vector<Qp*> all;
  for (const auto& [number, qp] : queue_pairs()) all.push_back(qp);
  for (Qp* qp : all) {
    const Qp* peer = peer_of(*qp);
    if (qp->held.empty() || (&qp->nic() != this && (peer == nullptr || &peer->nic() != this))) continue;
    // A packet is resent after 4.096 us * 2^timeout, retry_cnt times.
    const auto once = std::chrono::nanoseconds(std::int64_t{4096} << qp->attributes.timeout);
    if (after <= once * (qp->attributes.retry_cnt + 1)) {
      qp->go_on();
      continue;
    }
    const Held first = std::move(qp->held.front());
    qp->held.pop_front();
    static_cast<Cq*>(qp->send_cq)
        ->push(completion(*qp, first.wr.wr_id, IBV_WC_RETRY_EXC_ERR), false, first.number);
    qp->fail();
  }
}

void Nic::set_port(ibv_port_state state) {
  const LockGuard guard(lock());
  port.state = state;
  link_lost = state != IBV_PORT_ACTIVE;
  report(link_lost ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
}

Machine::Machine() : before_(machine) { machine = this; }
Machine::~Machine() {
  if (machine == this) machine = before_;
}
Machine* Machine::current() { return machine; }

Nic& Machine::add(const Profile& profile) {
  Nic& nic = *nics_.emplace_back(std::make_shared<Nic>(profile));
  nic.set_gid(1, "10.0.0." + std::to_string(nics_.size()));
  return nic;
}

}  // namespace rdma_rpc::nic

using namespace rdma_rpc::nic;

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
  const LockGuard guard(lock());
  for (const auto& nic : machine->nics()) {
    if (&nic->device != device) continue;
    auto* context = new Context{};
    context->device = device;
    context->nic = nic;
    context->cmd_fd = -1;
    context->async_fd = semaphore();
    context->num_comp_vectors = nic->vectors_max;
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
  const LockGuard guard(lock());
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

/// The header's inline function calls this function with room for all of the newer attributes.
IN_FRONT int ibv_query_port(ibv_context* context, std::uint8_t, _compat_ibv_port_attr* attributes) {
  const LockGuard guard(lock());
  const ibv_port_attr& port = commanded(context).port;
  std::memcpy(static_cast<void*>(attributes), &port, sizeof port);
  return 0;
}

IN_FRONT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most,
                                      std::uint32_t, std::size_t) {
  const LockGuard guard(lock());
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
  const LockGuard guard(lock());
  Nic& nic = commanded(pd->context);
  nic.registered.push_back(access);
  if (!nic.registration_errors.empty()) {
    const int error = nic.registration_errors.front();
    nic.registration_errors.pop_front();
    if (error != 0) return refuse<ibv_mr>(error);
  }
  if (!nic.profile.takes_relaxed_ordering && (access & IBV_ACCESS_RELAXED_ORDERING) != 0)
    return refuse<ibv_mr>(EINVAL);
  if (length > nic.profile.attributes.max_mr_size) return refuse<ibv_mr>(EINVAL);
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
  const LockGuard guard(lock());
  Nic& nic = commanded(mr->context);
  for (const auto& [index, mw] : keys().windows) {
    if (mw->mr == mr) nic.misuse.push_back("a region is deregistered to which a window is bound");
  }
  --nic.live.regions;
  keys().regions.erase(mr->lkey >> 8);
  delete static_cast<Mr*>(mr);
  return 0;
}

IN_FRONT int ibv_get_async_event(ibv_context* handle, ibv_async_event* event) {
  auto& context = *static_cast<Context*>(handle);
  if (!was_rung(context.async_fd)) return -1;
  const LockGuard guard(lock());
  *event = context.events.front();
  context.events.pop_front();
  return 0;
}
IN_FRONT void ibv_ack_async_event(ibv_async_event*) {}
