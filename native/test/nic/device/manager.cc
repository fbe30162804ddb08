// Implements the functions that replace those of librdmacm. They connect NICs of this process by IPv4
// address. See nic.h. A NIC has rdma_cm when Machine::has_manager is set and the host has its address
// (host.h).
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string_view>
#include <vector>

#include "nic/device/calls.h"

namespace rdma_rpc::nic {
namespace {

constexpr char kFile[] = "/dev/infiniband/rdma_cm";
/// Reject reasons of the kernel: no listener, and rdma_reject().
constexpr int kInvalidServiceId = 8, kRejected = 28;

struct Event : rdma_cm_event {
  std::vector<std::byte> data;
};

struct EventChannel : rdma_event_channel {
  std::deque<Event*> events;
};

struct Id : rdma_cm_id {
  std::shared_ptr<Nic> nic;
  Id* peer = nullptr;
  bool listens = false, established = false;
  rdma_conn_param param{};  ///< the data that this side has sent about itself
  EventChannel& events() const { return *static_cast<EventChannel*>(channel); }
  void report(rdma_cm_event_type type, int status = 0, Id* listener = nullptr, const Id* said_by = nullptr);
  void end_peer(rdma_cm_event_type type, int status = 0);
};

std::vector<Id*>& listeners() {
  static auto& all = *new std::vector<Id*>;
  return all;
}

/// Returns all ids that exist.
std::vector<Id*>& ids() {
  static auto& all = *new std::vector<Id*>;
  return all;
}

/// librdmacm opens its own context of each device, and keeps it open. These contexts do the same, and are
/// never deleted.
ibv_context* context_of(const std::shared_ptr<Nic>& nic) {
  static auto& all = *new std::vector<Context*>;
  for (Context* each : all) {
    if (each->nic == nic) return each;
  }
  auto* context = new Context{};
  context->device = &nic->device;
  context->nic = nic;
  context->cmd_fd = context->async_fd = -1;
  return all.emplace_back(context);
}

bool has_address(const Nic& nic, const in_addr& ip) {
  return std::any_of(nic.gids.begin(), nic.gids.end(), [&](const ibv_gid_entry& gid) {
    return std::memcmp(gid.gid.raw + 12, &ip, sizeof ip) == 0;
  });
}

void Id::report(rdma_cm_event_type type, int status, Id* listener, const Id* said_by) {
  auto* event = new Event{};
  event->id = this;
  event->listen_id = listener;
  event->event = type;
  event->status = status;
  if (said_by != nullptr) {
    event->param.conn = said_by->param;
    const auto* data = static_cast<const std::byte*>(said_by->param.private_data);
    if (data != nullptr) event->data.assign(data, data + said_by->param.private_data_len);
    event->param.conn.private_data = event->data.data();
  }
  events().events.push_back(event);
  ring(channel->fd);
}

void Id::end_peer(rdma_cm_event_type type, int status) {
  if (peer == nullptr) return;
  peer->report(type, status);
  peer->peer = nullptr;
  peer = nullptr;
}

int failed(int error) {
  errno = error;
  return -1;
}

Id& of(rdma_cm_id* id) { return *static_cast<Id*>(id); }

int bind(Id& id, const sockaddr* address) {
  if (id.verbs != nullptr) return 0;
  if (address == nullptr || address->sa_family != AF_INET) return failed(EAFNOSUPPORT);
  const auto& from = *reinterpret_cast<const sockaddr_in*>(address);
  for (const auto& nic : Machine::current()->nics()) {
    if (!has_address(*nic, from.sin_addr)) continue;
    id.nic = nic;
    id.verbs = context_of(nic);
    id.port_num = 1;
    id.route.addr.src_sin = from;
    static std::uint16_t next = 20'000;
    if (from.sin_port == 0) id.route.addr.src_sin.sin_port = htons(next++);
    return 0;
  }
  return failed(ENODEV);
}

}  // namespace

void Nic::move_address() {
  const LockGuard guard(lock());
  for (Id* id : ids()) {
    if (id->established && id->nic.get() == this) id->report(RDMA_CM_EVENT_ADDR_CHANGE);
  }
}

}  // namespace rdma_rpc::nic

using namespace rdma_rpc::nic;

/// The plug-in checks whether the file of rdma_cm may be used.
IN_FRONT int access(const char* path, int mode) noexcept {
  static const auto real = reinterpret_cast<int (*)(const char*, int)>(::dlsym(RTLD_NEXT, "access"));
  const Machine* machine = Machine::current();
  if (machine == nullptr || std::string_view(path) != kFile) return real(path, mode);
  return machine->has_manager ? 0 : failed(ENOENT);
}

IN_FRONT rdma_event_channel* rdma_create_event_channel() {
  auto* channel = new EventChannel{};
  channel->fd = semaphore();
  return channel;
}
IN_FRONT void rdma_destroy_event_channel(rdma_event_channel* channel) {
  ::close(channel->fd);
  delete static_cast<EventChannel*>(channel);
}

IN_FRONT int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** made, void* context,
                            rdma_port_space ps) {
  auto* id = new Id{};
  id->channel = channel;
  id->context = context;
  id->ps = ps;
  ids().push_back(id);
  *made = id;
  return 0;
}
IN_FRONT int rdma_destroy_id(rdma_cm_id* handle) {
  const LockGuard guard(lock());
  Id& id = of(handle);
  std::erase(listeners(), &id);
  std::erase(ids(), &id);
  id.end_peer(id.established ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED, kRejected);
  take_back(id.events().events, id.channel->fd, [&](Event* event) {
    if (event->id != &id) return false;
    delete event;
    return true;
  });
  delete &id;
  return 0;
}
IN_FRONT int rdma_set_option(rdma_cm_id*, int, int, void*, std::size_t) { return 0; }
IN_FRONT int rdma_notify(rdma_cm_id*, ibv_event_type) { return 0; }

IN_FRONT int rdma_bind_addr(rdma_cm_id* handle, sockaddr* address) {
  const LockGuard guard(lock());
  return bind(of(handle), address);
}
IN_FRONT __be16 rdma_get_src_port(rdma_cm_id* id) { return id->route.addr.src_sin.sin_port; }
IN_FRONT int rdma_listen(rdma_cm_id* handle, int) {
  const LockGuard guard(lock());
  of(handle).listens = true;
  listeners().push_back(&of(handle));
  return 0;
}
IN_FRONT int rdma_resolve_addr(rdma_cm_id* handle, sockaddr* from, sockaddr* to, int) {
  const LockGuard guard(lock());
  if (bind(of(handle), from) != 0) return -1;
  handle->route.addr.dst_sin = *reinterpret_cast<const sockaddr_in*>(to);
  of(handle).report(RDMA_CM_EVENT_ADDR_RESOLVED);
  return 0;
}
IN_FRONT int rdma_resolve_route(rdma_cm_id* handle, int) {
  const LockGuard guard(lock());
  of(handle).report(RDMA_CM_EVENT_ROUTE_RESOLVED);
  return 0;
}

IN_FRONT int rdma_connect(rdma_cm_id* handle, rdma_conn_param* param) {
  const LockGuard guard(lock());
  Id& id = of(handle);
  id.param = *param;
  if (id.nic->requests_to_lose != 0) {
    --id.nic->requests_to_lose;
    return 0;
  }
  const sockaddr_in& to = id.route.addr.dst_sin;
  const auto found = std::find_if(listeners().begin(), listeners().end(), [&](const Id* each) {
    return each->route.addr.src_sin.sin_port == to.sin_port && has_address(*each->nic, to.sin_addr);
  });
  if (found == listeners().end() || id.nic->link_lost) {
    id.report(RDMA_CM_EVENT_REJECTED, kInvalidServiceId);
    return 0;
  }
  auto* made = ids().emplace_back(new Id{});
  made->channel = (*found)->channel;
  made->context = (*found)->context;
  made->ps = id.ps;
  made->nic = (*found)->nic;
  made->verbs = (*found)->verbs;
  made->port_num = 1;
  made->route.addr.src_sin = to;
  made->route.addr.dst_sin = id.route.addr.src_sin;
  made->peer = &id;
  id.peer = made;
  made->report(RDMA_CM_EVENT_CONNECT_REQUEST, 0, *found, &id);
  return 0;
}
IN_FRONT int rdma_accept(rdma_cm_id* handle, rdma_conn_param* param) {
  const LockGuard guard(lock());
  Id& id = of(handle);
  if (id.peer == nullptr) return failed(ECONNRESET);
  id.param = *param;
  id.peer->report(RDMA_CM_EVENT_CONNECT_RESPONSE, 0, nullptr, &id);
  return 0;
}
IN_FRONT int rdma_reject(rdma_cm_id* handle, const void*, std::uint8_t) {
  const LockGuard guard(lock());
  of(handle).end_peer(RDMA_CM_EVENT_REJECTED, kRejected);
  return 0;
}
IN_FRONT int rdma_establish(rdma_cm_id* handle) {
  const LockGuard guard(lock());
  Id& id = of(handle);
  if (id.peer == nullptr) return failed(ECONNRESET);
  id.established = id.peer->established = true;
  id.peer->report(RDMA_CM_EVENT_ESTABLISHED);
  return 0;
}
IN_FRONT int rdma_disconnect(rdma_cm_id* handle) {
  const LockGuard guard(lock());
  of(handle).end_peer(RDMA_CM_EVENT_DISCONNECTED);
  return 0;
}

IN_FRONT int rdma_get_cm_event(rdma_event_channel* handle, rdma_cm_event** event) {
  auto& channel = *static_cast<EventChannel*>(handle);
  if (!was_rung(channel.fd)) return -1;
  const LockGuard guard(lock());
  *event = channel.events.front();
  channel.events.pop_front();
  return 0;
}
IN_FRONT int rdma_ack_cm_event(rdma_cm_event* event) {
  delete static_cast<Event*>(event);
  return 0;
}

IN_FRONT int rdma_init_qp_attr(rdma_cm_id* handle, ibv_qp_attr* attr, int* mask) {
  const LockGuard guard(lock());
  Id& id = of(handle);
  *mask = IBV_QP_STATE;
  attr->port_num = 1;
  if (attr->qp_state == IBV_QPS_INIT) {
    *mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    return 0;
  }
  if (id.peer == nullptr) return failed(EINVAL);
  if (attr->qp_state == IBV_QPS_RTR) {
    const Nic& nic = *id.peer->nic;
    const in_addr& ip = id.route.addr.dst_sin.sin_addr;
    const auto gid = std::find_if(nic.gids.begin(), nic.gids.end(), [&](const ibv_gid_entry& each) {
      return std::memcmp(each.gid.raw + 12, &ip, sizeof ip) == 0;
    });
    const in_addr& own = id.route.addr.src_sin.sin_addr;
    const auto from = std::find_if(id.nic->gids.begin(), id.nic->gids.end(), [&](const ibv_gid_entry& each) {
      return std::memcmp(each.gid.raw + 12, &own, sizeof own) == 0;
    });
    if (gid == nic.gids.end() || from == id.nic->gids.end()) return failed(EINVAL);
    *mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER;
    attr->ah_attr = {};
    attr->ah_attr.is_global = 1;
    attr->ah_attr.port_num = 1;
    attr->ah_attr.grh.sgid_index = static_cast<std::uint8_t>(from->gid_index);
    attr->ah_attr.grh.dgid = gid->gid;
    attr->path_mtu = std::min(id.nic->port.active_mtu, nic.port.active_mtu);
    attr->dest_qp_num = id.peer->param.qp_num;
    return 0;
  }
  *mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  return 0;
}
