// Opens an endpoint's device, memory and queue pairs. See endpoint.h.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "fabric/verbs/device_list.h"
#include "fabric/verbs/refusal.h"
#include "perf/bare/endpoint.h"

namespace rdma_rpc::perf::bare {

namespace verbs = fabric::verbs;

namespace {

constexpr int kRemote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
/// Size of the GRH in front of a datagram.
constexpr std::uint32_t kGrhBytes = 40;

ibv_qp_type type_of(Transport transport) {
  return transport == Transport::rc ? IBV_QPT_RC : transport == Transport::uc ? IBV_QPT_UC : IBV_QPT_UD;
}

}  // namespace

void Unmap::operator()(std::byte* data) const { ::munmap(data, bytes); }

BareEndpoint::~BareEndpoint() {
  if (group_.has_value()) ibv_detach_mcast(queues_[0].qp.get(), &*group_, 0);
  if (events_ != 0) ibv_ack_cq_events(cq_.get(), events_);
}

std::string BareEndpoint::open(const fabric::VerbsOptions& device, const EndpointOptions& options) {
  std::string why = open_device(device);
  if (why.empty()) why = open_memory(options.memory_bytes);
  if (!why.empty()) return why;
  channel_.reset(ibv_create_comp_channel(context_.get()));
  // The descriptor is non-blocking, because its events are fetched without waiting.
  if (channel_ == nullptr || ::fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0)
    return std::string("no completion channel: ") + std::strerror(errno);
  multicast_ = options.multicast;
  const std::uint32_t entries = options.queue_pairs * (options.send_wr_max + options.recv_wr_max);
  cq_.reset(ibv_create_cq(context_.get(), static_cast<int>(entries), nullptr, channel_.get(), 0));
  if (cq_ == nullptr)
    return "no completion queue of " + std::to_string(entries) + " entries: " + std::strerror(errno) +
           " (--tx-depth, --rx-depth, --qp)";
  if (options.shared_receives) {
    ibv_srq_init_attr wanted{nullptr, {options.queue_pairs * options.recv_wr_max, 1, 0}};
    receives_.reset(ibv_create_srq(pd_.get(), &wanted));
    if (receives_ == nullptr)
      return "no shared receive queue of " + std::to_string(wanted.attr.max_wr) +
             " receives: " + std::strerror(errno) + " (--rx-depth, --qp)";
  }
  for (std::uint32_t i = 0; i < options.queue_pairs && why.empty(); ++i) why = open_queue(options);
  return why;
}

std::string BareEndpoint::open_device(const fabric::VerbsOptions& options) {
  const verbs::DeviceList list;
  std::string why = list.why_none();
  if (!why.empty()) return "verbs is off: " + why;
  const auto interface = verbs::interface_with(options.address);
  bool known = false;
  for (ibv_device* candidate : list.devices()) {
    if (!options.device.empty() && options.device != ibv_get_device_name(candidate)) continue;
    known = true;
    if (candidate->transport_type != IBV_TRANSPORT_IB) {
      why = std::string(ibv_get_device_name(candidate)) +
            ": iWARP connects by rdma_cm only, which --fabric verbs uses";
      continue;
    }
    verbs::Port port;
    verbs::ContextPtr context = verbs::open_context(candidate, &why);
    if (context == nullptr) continue;
    why = verbs::choose_port(context.get(), options, interface, &port);
    if (!why.empty()) continue;
    if (context_ != nullptr && !port.has_address) continue;
    context_ = std::move(context);
    port_ = port;
    if (!interface || port_.has_address) break;
  }
  if (context_ == nullptr)
    return known ? why : "there is no RDMA device '" + options.device + "' here, only " + list.names();
  ibv_device_attr attr{};
  if (const int error = ibv_query_device(context_.get(), &attr); error != 0)
    return std::string("the device tells nothing: ") + std::strerror(error);
  reads_ =
      static_cast<std::uint8_t>(std::clamp(std::min(attr.max_qp_rd_atom, attr.max_qp_init_rd_atom), 1, 255));
  limits_.device = ibv_get_device_name(context_->device);
  const bool reliable = transport_ == Transport::rc;
  limits_.atomic = reliable && attr.atomic_cap != IBV_ATOMIC_NONE;
  limits_.reliable = reliable;
  limits_.header_bytes = transport_ == Transport::ud ? kGrhBytes : 0;
  limits_.message_max = transport_ == Transport::ud ? 128ULL << port_.address.mtu : port_.max_msg_bytes;
  return {};
}

std::string BareEndpoint::open_memory(std::size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return "the system has no " + std::to_string(bytes) + " bytes of memory";
  memory_ = {static_cast<std::byte*>(data), Unmap{bytes}};
  memory_bytes_ = bytes;
  pd_.reset(ibv_alloc_pd(context_.get()));
  if (pd_ == nullptr) return std::string("no protection domain: ") + std::strerror(errno);
  region_.reset(
      ibv_reg_mr(pd_.get(), data, bytes, kRemote | (limits_.atomic ? IBV_ACCESS_REMOTE_ATOMIC : 0)));
  if (region_ == nullptr) return verbs::why_refused(errno);
  memory_address_ = reinterpret_cast<std::uintptr_t>(data);
  for (std::size_t i = 0; i < kBatch; ++i) {
    sges_[i].lkey = region_->lkey;
    work_[i].sg_list = &sges_[i];
    work_[i].num_sge = 1;
    work_[i].next = i + 1 < kBatch ? &work_[i + 1] : nullptr;
  }
  receive_sge_.lkey = region_->lkey;
  receive_.sg_list = &receive_sge_;
  receive_.num_sge = 1;
  return {};
}

std::string BareEndpoint::open_queue(const EndpointOptions& options) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq_.get();
  wanted.qp_type = type_of(transport_);
  wanted.srq = receives_.get();
  wanted.cap = {options.send_wr_max, receives_ == nullptr ? options.recv_wr_max : 0, 1, 1,
                options.inline_max};
  Queue queue;
  queue.qp.reset(ibv_create_qp(pd_.get(), &wanted));
  while (queue.qp == nullptr && wanted.cap.max_inline_data > 0) {
    // The device does not report its maximum, so the code tries again with half of the number.
    wanted.cap = {options.send_wr_max, receives_ == nullptr ? options.recv_wr_max : 0, 1, 1,
                  wanted.cap.max_inline_data / 2};
    queue.qp.reset(ibv_create_qp(pd_.get(), &wanted));
  }
  if (queue.qp == nullptr)
    return "no queue pair for " + std::to_string(options.send_wr_max) + " requests and " +
           std::to_string(options.recv_wr_max) + " receives: " + std::strerror(errno) +
           " (--tx-depth, --rx-depth)";
  // A device may grant one queue pair less than another.
  const std::uint32_t before = queues_.empty() ? options.inline_max : limits_.inline_max;
  limits_.inline_max = std::min(wanted.cap.max_inline_data, before);
  queue.psn = std::random_device{}() & 0xffffff;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = port_.number;
  attr.qkey = kQkey;
  attr.qp_access_flags = static_cast<unsigned>(kRemote | (limits_.atomic ? IBV_ACCESS_REMOTE_ATOMIC : 0));
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                   (transport_ == Transport::ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  if (const int error = ibv_modify_qp(queue.qp.get(), &attr, mask); error != 0)
    return std::string("the queue pair takes no receives: ") + std::strerror(error);
  queues_.push_back(std::move(queue));
  return {};
}

}  // namespace rdma_rpc::perf::bare
