// Opening a device and making what belongs to it; see device.h.
#include "fabric/verbs/device.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/memory.h"
#include "fabric/verbs/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::uint32_t kSgeMax = 16, kInlineMax = 512, kPlacesMax = 1u << 16, kGenerations = 1u << 15;

bool unblock(int fd) { return ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) == 0; }

ibv_qp_init_attr rc(ibv_cq* cq, std::uint32_t sends, std::uint32_t receives, std::uint32_t sges,
                    std::uint32_t bytes) {
  ibv_qp_init_attr init{};
  init.send_cq = cq;
  init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {sends, receives, sges, 1, bytes};
  return init;
}

std::string memlock() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur) + " bytes";
}

/// RoCE v2 on IPv4, on global IPv6, on link-local IPv6, RoCE v1; larger is better.
int rank(const ibv_gid_entry& gid) {
  if (gid.gid_type == IBV_GID_TYPE_IB) return 1;
  if (gid.gid_type == IBV_GID_TYPE_ROCE_V1) return 2;
  static constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(gid.gid.raw, kMapped, sizeof kMapped) == 0) return 5;
  return gid.gid.raw[0] == 0xfe && gid.gid.raw[1] == 0x80 ? 3 : 4;
}

}  // namespace

std::unique_ptr<Device> Device::open(const VerbsOptions& options, std::string* error) {
  if (options.ack_timeout < 1 || options.ack_timeout > 31 || options.retry_count > 7 ||
      options.min_rnr_timer > 31) {
    *error = "verbs: ack_timeout must be 1 to 31, retry_count at most 7, min_rnr_timer at most 31";
    return nullptr;
  }
  if (ibv_is_fork_initialized() == IBV_FORK_DISABLED) ibv_fork_init();
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  *error = count == 0 ? "verbs is off: no RDMA device (soft-RoCE: rdma link add rxe0 type rxe netdev eth0)"
                      : "verbs is off: there is no RDMA device '" + options.device + "'";
  std::unique_ptr<Device> opened;
  for (int i = 0; i < count && opened == nullptr; ++i) {
    const std::string name = ibv_get_device_name(list[i]);
    if (!options.device.empty() && options.device != name) continue;
    auto device = std::make_unique<Device>();
    device->options_ = options;
    device->capabilities_.name = name;
    device->context_.reset(ibv_open_device(list[i]));
    if (device->context_ == nullptr) {
      *error = "verbs is off: cannot open " + name + ": " + std::strerror(errno) +
               " (rights on /dev/infiniband/uverbs*)";
    } else if (device->choose_port(error) && device->choose_gid(error) && device->probe(error)) {
      opened = std::move(device);
    }
  }
  if (list != nullptr) ibv_free_device_list(list);
  return opened;
}

bool Device::choose_port(std::string* error) {
  *error = "verbs is off: " + capabilities_.name + " has no active port";
  if (ibv_query_device(context_.get(), &attr_) != 0) return false;
  for (std::uint8_t port = 1; port <= attr_.phys_port_cnt; ++port) {
    if (options_.port != 0 && options_.port != port) continue;
    ibv_port_attr found{};
    if (ibv_query_port(context_.get(), port, &found) != 0 || found.state != IBV_PORT_ACTIVE) continue;
    options_.port = port;
    capabilities_.port = port;
    address_.mtu = static_cast<std::uint8_t>(found.active_mtu);
    address_.link_layer = found.link_layer;
    address_.lid = found.lid;
    capabilities_.max_msg_bytes = found.max_msg_sz;
    return true;
  }
  return false;
}

bool Device::choose_gid(std::string* error) {
  ibv_gid_entry table[256];
  const ssize_t count = ibv_query_gid_table(context_.get(), table, 256, 0);
  const ibv_gid_entry* best = nullptr;
  for (const ibv_gid_entry& gid : std::span(table, static_cast<std::size_t>(std::max<ssize_t>(count, 0)))) {
    if (gid.port_num != options_.port) continue;
    if (options_.gid_index >= 0 && gid.gid_index != static_cast<std::uint32_t>(options_.gid_index)) continue;
    if (best == nullptr || rank(gid) > rank(*best)) best = &gid;
  }
  if (best == nullptr) {
    *error = "verbs is off: " + capabilities_.name + " has no GID";
    if (options_.gid_index >= 0) error->append(" number ").append(std::to_string(options_.gid_index));
    error->append(" (does its network interface have an address?)");
    return false;
  }
  gid_index_ = static_cast<std::uint8_t>(best->gid_index);
  address_.gid_type = static_cast<std::uint8_t>(best->gid_type);
  std::memcpy(address_.gid.data(), best->gid.raw, address_.gid.size());
  return true;
}

std::uint32_t Device::probe_inline(ibv_cq* cq) const {
  for (std::uint32_t bytes = kInlineMax; bytes > 0; bytes /= 2) {
    ibv_qp_init_attr init = rc(cq, 16, 16, capabilities_.max_sge, bytes);
    if (const QpPtr qp(ibv_create_qp(pd_.get(), &init)); qp != nullptr)
      return std::min(init.cap.max_inline_data, kInlineMax);
  }
  return 0;
}

bool Device::probe(std::string* error) {
  *error = "verbs is off: " + capabilities_.name +
           " gives no protection domain or completion queue: locked memory is limited to " + memlock() +
           " (ulimit -l)";
  pd_.reset(ibv_alloc_pd(context_.get()));
  if (pd_ == nullptr || !unblock(context_->async_fd)) return false;
  const CqPtr cq(ibv_create_cq(context_.get(), 16, nullptr, nullptr, 0));
  if (cq == nullptr) return false;
  const bool iwarp = context_->device->transport_type == IBV_TRANSPORT_IWARP;
  if (iwarp) {
    *error = "verbs is off: " + capabilities_.name + " is an iWARP device, which only rdma_cm can connect";
    return false;
  }
  Capabilities& can = capabilities_;
  can.max_sge = std::min(static_cast<std::uint32_t>(attr_.max_sge), kSgeMax);
  can.max_sge_read = attr_.max_sge_rd > 0
                         ? std::min(static_cast<std::uint32_t>(attr_.max_sge_rd), can.max_sge)
                         : can.max_sge;
  can.max_qp_wr = static_cast<std::uint32_t>(attr_.max_qp_wr);
  can.max_rd_atomic = static_cast<std::uint32_t>(std::clamp(attr_.max_qp_init_rd_atom, 1, 128));
  address_.reads = static_cast<std::uint16_t>(std::clamp(attr_.max_qp_rd_atom, 1, 128));
  can.max_inline = probe_inline(cq.get());
  can.immediate = true;
  can.pins_memory = true;
  can.exposes_any_memory = true;
  can.windows = (attr_.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0 &&
                MwPtr(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_2)) != nullptr;
  error->clear();
  return true;
}

std::unique_ptr<HostMemory> Device::alloc_memory(std::size_t bytes, std::string_view) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  return std::make_unique<Memory>(static_cast<std::byte*>(data), bytes, counters_);
}

std::unique_ptr<MemoryRegion> Device::reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                             std::string* error) {
  std::uint32_t flags = access;
  if ((access & access_remote_write) != 0) flags |= IBV_ACCESS_LOCAL_WRITE;
  MrPtr mr(ibv_reg_mr(pd_.get(), addr, length, flags));
  if (mr == nullptr) {
    *error = "cannot register " + std::to_string(length) + " bytes on " + capabilities_.name + ": " +
             std::strerror(errno) + "; locked memory is limited to " + memlock() + " (ulimit -l)";
    return nullptr;
  }
  return std::make_unique<Region>(std::move(mr), access, counters_);
}

std::unique_ptr<MemoryWindow> Device::alloc_mw() {
  if (!capabilities_.windows) return nullptr;
  MwPtr mw(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_2));
  return mw == nullptr ? nullptr : std::make_unique<Window>(std::move(mw), counters_);
}

std::unique_ptr<fabric::CompletionQueue> Device::create_cq(std::uint32_t entries) {
  ChannelPtr channel(ibv_create_comp_channel(context_.get()));
  if (channel == nullptr || !unblock(channel->fd)) return nullptr;
  CqPtr cq(ibv_create_cq(context_.get(),
                         static_cast<int>(std::min(entries, static_cast<std::uint32_t>(attr_.max_cqe))),
                         nullptr, channel.get(), 0));
  const int epoll = cq == nullptr ? -1 : ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return nullptr;
  for (const int fd : {channel->fd, context_->async_fd}) {
    epoll_event watch{};
    watch.events = EPOLLIN;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &watch);
  }
  return std::make_unique<CompletionQueue>(*this, std::move(channel), std::move(cq), epoll);
}

std::unique_ptr<fabric::QueuePair> Device::create_qp(fabric::CompletionQueue& cq, const QpOptions& options,
                                                     std::string* error) {
  auto& queue = static_cast<CompletionQueue&>(cq);
  ibv_qp_init_attr init = rc(queue.get(), options.send_wr_max, options.recv_wr_max, capabilities_.max_sge,
                             capabilities_.max_inline);
  QpPtr qp(ibv_create_qp(pd_.get(), &init));
  std::uint32_t psn = 0;
  if (qp == nullptr || ::getrandom(&psn, sizeof psn, 0) != static_cast<ssize_t>(sizeof psn)) {
    *error = "cannot make a queue pair on " + capabilities_.name + ": " + std::strerror(errno) +
             "; its deepest queue is " + std::to_string(capabilities_.max_qp_wr) +
             ", locked memory is limited to " + memlock();
    return nullptr;
  }
  if (counters_.queue_pairs >= kPlacesMax) {
    *error = "no more than " + std::to_string(kPlacesMax) + " queue pairs on one device";
    return nullptr;
  }
  return std::make_unique<QueuePair>(*this, queue, options, std::move(qp), psn & 0xffffff);
}

std::uint32_t Device::enter(QueuePair& qp) {
  auto free =
      std::find_if(places_.begin(), places_.end(), [](const Place& place) { return place.qp == nullptr; });
  if (free == places_.end()) free = places_.insert(free, Place{});
  free->qp = &qp;
  free->generation = (free->generation + 1) % kGenerations;
  return free->generation << 16 | static_cast<std::uint32_t>(free - places_.begin());
}

void Device::leave(std::uint32_t place) { places_[place & 0xffff].qp = nullptr; }

QueuePair* Device::find(std::uint32_t place) const {
  const std::uint32_t index = place & 0xffff;
  return index < places_.size() && places_[index].generation == place >> 16 ? places_[index].qp : nullptr;
}

void Device::read_async_events() {
  ibv_async_event event{};
  while (ibv_get_async_event(context_.get(), &event) == 0) {
    switch (event.event_type) {
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        if (event.element.qp->qp_context != nullptr)
          static_cast<QueuePair*>(event.element.qp->qp_context)->to_error();
        break;
      case IBV_EVENT_CQ_ERR:
      case IBV_EVENT_DEVICE_FATAL:
        for (const Place& place : places_) {
          if (place.qp != nullptr) place.qp->to_error();
        }
        break;
      default:  // ports and GIDs: the retries of a queue pair decide what becomes of it
        break;
    }
    ibv_ack_async_event(&event);
  }
}

}  // namespace rdma_rpc::fabric::verbs
