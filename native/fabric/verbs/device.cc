// Creates the objects that belong to a device; see device.h.
#include "fabric/verbs/device.h"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "fabric/system_limit.h"
#include "fabric/verbs/datagram/offered.h"
#include "fabric/verbs/numa.h"
#include "fabric/verbs/optional.h"
#include "fabric/verbs/queue/completion_queue.h"
#include "fabric/verbs/queue/entry_room.h"
#include "fabric/verbs/queue/queue_pair.h"
#include "fabric/verbs/queue/receive_queue.h"
#include "fabric/verbs/refusal.h"
#include "fabric/verbs/trial.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// The limit of slots leaves out the last value of 16 bits, which marks shared receives.
constexpr std::uint32_t kSlotsMax = (1u << 16) - 1, kGenerations = 1u << 15;

/// Returns a number that increases with each completion queue of this process, over all threads and devices.
/// This number makes each queue use another interrupt of its device; with a single interrupt, one CPU would
/// handle the events of all threads.
unsigned next_vector() {
  static std::atomic<unsigned> next = 0;
  return next++;
}

bool unblock(int fd) { return ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) == 0; }

}  // namespace

std::unique_ptr<Device> Device::make(ContextPtr context, const VerbsOptions& options, const Port& port,
                                     std::string* why) {
  std::unique_ptr<Device> device(new Device);
  device->options_ = options;
  device->port_ = port;
  device->context_ = std::move(context);
  device->pd_.reset(ibv_alloc_pd(device->context_.get()));
  if (device->pd_ == nullptr || !unblock(device->context_->async_fd) || !device->watchdog_.open() ||
      !device->attempts_.open()) {
    *why = std::string(ibv_get_device_name(device->context_->device)) +
           " cannot create a protection domain: " + why_refused(errno);
    return nullptr;
  }
  *why = probe(device->pd_.get(), &device->probed_);
  if (!why->empty()) return nullptr;
  device->try_out(port);
  device->probed_.capabilities.own_sends = QueuePair::internal_sends(true, *device);
  device->numa_node_ = node_of_device(device->capabilities().name);
  device->prepared_ = soft::prepare(device->driver(), device->context_.get());
  device->probed_.capabilities.port = port.number;
  device->probed_.capabilities.max_msg_bytes = port.max_msg_bytes;
  offer_unreliable(device->pd_.get(), port, device->probed_.attributes, &device->probed_.capabilities);
  *why = device->choose_ways();
  device->probed_.capabilities.path = device->path();
  return why->empty() ? std::move(device) : nullptr;
}

/// Returns a quarter of the remaining READs, so that later queue pairs get some, too. Returns 1 when none is
/// left, because other queue pairs may be gone before this one is connected.
std::uint16_t Device::share_of_reads() const {
  constexpr std::uint32_t kShare = 4;
  const int of_device = probed_.attributes.max_res_rd_atom;
  if (of_device <= 0) return probed_.reads_served;
  const auto all = static_cast<std::uint32_t>(of_device);
  const std::uint32_t left = all - std::min(all, reads_reserved_);
  return static_cast<std::uint16_t>(std::clamp<std::uint32_t>(left / kShare, 1, probed_.reads_served));
}

std::string Device::budget(const char* limit, std::uint64_t used, int most) const {
  return "; this process has " + std::to_string(used) + " of the " + std::to_string(most) +
         " that the device allows all processes together (" + limit + ")";
}

std::string Device::choose_ways() {
  const bool iwarp = context_->device->transport_type == IBV_TRANSPORT_IWARP;
  const VerbsConnect wish = options_.connect;
  std::string why_no_cm = "option connect says sideband";
  if (wish != VerbsConnect::sideband) cm_ = ConnectionManager::open(*this, &why_no_cm);
  if (cm_ != nullptr) port_.address.ip = cm_->address().bytes;
  const bool sideband = !iwarp && wish != VerbsConnect::cm;
  port_.address.ways =
      static_cast<std::uint8_t>((cm_ != nullptr ? way_cm : 0) | (sideband ? way_sideband : 0) |
                                (iwarp ? way_iwarp : 0) | (options_.on_demand ? way_pauses : 0));
  probed_.capabilities.steps = sideband;
  if (!sideband)
    probed_.capabilities.reasons[Feature::steps] =
        "rdma_cm makes all steps by itself" +
        std::string(iwarp ? ", and iWARP has only that" : " (option connect)");
  if (cm_ != nullptr || sideband) return "";
  return capabilities().name + " can be connected by rdma_cm only (" +
         (iwarp ? "it is an iWARP device" : "option connect") + "): " + why_no_cm;
}

std::string Device::path() const {
  std::string text = capabilities().name + " port " + std::to_string(port_.number) + ", GID " +
                     gid_text(port_.address.gid.data());
  if (cm_ != nullptr) text += ", " + to_string(IpAddress{cm_->address().bytes, 0, cm_->address().scope});
  return text;
}

void Device::try_out(const Port& port) {
  Capabilities& can = probed_.capabilities;
  const int reads = probed_.attributes.max_res_rd_atom;
  if (reads > 0 && share_of_reads() < probed_.reads_served)
    can.notes.push_back(
        "It serves " + std::to_string(reads) +
        " READs of peers at once for all connections of all processes (max_res_rd_atom), so a "
        "connection gets " +
        std::to_string(share_of_reads()) + " or less.");
  // An iWARP device has no connection without rdma_cm.
  if (context_->device->transport_type == IBV_TRANSPORT_IWARP) return;
  const Trial trial = verbs::try_out(pd_.get(), port, {can.windows, can.max_inline});
  if (!trial.why_not_tried.empty())
    can.notes.push_back("Its windows and inline data could not be tried: " + trial.why_not_tried + ".");
  if (!trial.why_no_inline.empty()) {
    can.max_inline = 0;
    can.notes.push_back("Its inline data does not work: " + trial.why_no_inline + ".");
  }
  if (trial.why_no_windows.empty()) return;
  can.windows = false;
  can.reasons[Feature::windows] = "its memory windows do not work: " + trial.why_no_windows;
  can.notes.push_back("Its memory windows do not work: " + trial.why_no_windows +
                      ". Large messages are copied through staging memory.");
}

void Device::refresh_port() {
  const Address before = port_.address;
  verbs::refresh_port(context_.get(), options_, &port_);
  if (port_.address.gid != before.gid) probed_.capabilities.path = path();
}

std::string Device::make_address(bool active, Address* address) {
  refresh_port();
  *address = port_.address;
  address->reads = share_of_reads();
  address->active = active ? 1 : 0;
  if (cm_ != nullptr && !active) {
    if (std::string why = cm_->listen(); !why.empty()) return why;
    address->ip_port = cm_->address().port;
  }
  constexpr std::uint32_t kPsnMask = 0xffffff;
  const auto token = static_cast<ssize_t>(address->token.size());
  if (::getrandom(&address->psn, sizeof address->psn, 0) != static_cast<ssize_t>(sizeof address->psn) ||
      ::getrandom(address->token.data(), address->token.size(), 0) != token)
    return std::string("no random numbers: ") + std::strerror(errno);
  address->psn &= kPsnMask;
  return "";
}

std::unique_ptr<HostMemory> Device::alloc_memory(std::size_t bytes, std::string_view) {
  auto memory = Memory::map(bytes, numa_node_, memory_bytes_);
  if (memory == nullptr)
    refusal_ = "cannot map " + std::to_string(bytes) + " bytes: " + system_refusal(errno);
  return memory;
}

std::unique_ptr<Pinning> Device::pinning(void* addr, std::size_t length, std::uint32_t access) {
  const Capabilities& can = capabilities();
  std::string refusal = why_not_register(addr, length, access, can);
  if (const std::uint64_t most = probed_.attributes.max_mr_size; refusal.empty() && most > 0 && length > most)
    refusal = "cannot register " + std::to_string(length) + " bytes on " + can.name +
              ": a region may have at most " + std::to_string(most) + " (max_mr_size)";
  // Atomics would not be ordered behind the writes before them.
  const bool relaxed = options_.relaxed_ordering && (access & access_remote_atomic) == 0;
  return std::make_unique<Pinning>(pd_.get(), addr, length, access,
                                   relaxed ? unsigned{IBV_ACCESS_RELAXED_ORDERING} : 0u, std::move(refusal),
                                   can.name, windows_, counters_);
}

std::unique_ptr<MemoryRegion> Device::reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                             std::string* error) {
  const auto registration = pinning(addr, length, access);
  registration->pin();
  refused_for_the_memory_ = registration->refused_for_the_memory();
  auto region = registration->finish(error);
  if (region == nullptr && error != nullptr)
    *error += budget("max_mr", counters_.memory_regions, probed_.attributes.max_mr);
  return region;
}

std::unique_ptr<Registration> Device::begin_reg_mr(void* addr, std::size_t length, std::uint32_t access) {
  // Memory with on-demand paging is not pinned.
  if ((access & access_on_demand) != 0) return nullptr;
  return pinning(addr, length, access);
}

std::unique_ptr<MemoryRegion> Device::reg_dmabuf_mr(int fd, std::uint64_t offset, std::size_t length,
                                                    std::uint64_t iova, std::uint32_t access,
                                                    std::string* error) {
  if (!capabilities().dmabuf) return fabric::Device::reg_dmabuf_mr(fd, offset, length, iova, access, error);
  MrPtr mr(verbs::reg_dmabuf_mr(pd_.get(), offset, length, iova, fd, static_cast<int>(access)));
  if (mr == nullptr) {
    if (error != nullptr) *error = why_not_registered(errno, length, capabilities().name) + " (a dmabuf)";
    return nullptr;
  }
  return std::make_unique<Region>(std::move(mr), iova, access, windows_, counters_);
}

std::unique_ptr<MemoryWindow> Device::alloc_mw() {
  if (!capabilities().windows) return nullptr;
  MwPtr mw(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_2));
  return mw == nullptr ? nullptr : std::make_unique<Window>(std::move(mw), windows_, counters_);
}

std::unique_ptr<fabric::CompletionQueue> Device::create_cq(std::uint32_t entries) {
  errno = 0;
  ChannelPtr channel(ibv_create_comp_channel(context_.get()));
  if (channel != nullptr && unblock(channel->fd)) {
    const auto vectors = static_cast<unsigned>(std::max(context_->num_comp_vectors, 1));
    const auto vector = static_cast<int>(next_vector() % vectors);
    auto cq =
        std::make_unique<CompletionQueue>(*this, std::move(channel), entries, probed_.cq_entries_max, vector);
    if (cq->open()) return cq;
  }
  refusal_ = capabilities().name + " cannot create a completion queue: " + why_refused(errno);
  return nullptr;
}

std::unique_ptr<fabric::QueuePair> Device::create_qp(fabric::CompletionQueue& cq, const QpOptions& options,
                                                     std::string* error) {
  const Capabilities& can = capabilities();
  auto& queue = static_cast<CompletionQueue&>(cq);
  std::string reason = why_no_queues(options, can);
  if (!reason.empty()) reason += " of " + can.name;
  const auto* shared = static_cast<ReceiveQueue*>(options.shared_receives);
  if (gone_) reason = can.name + " was removed";
  if (counters_.queue_pairs >= kSlotsMax)
    reason = "no more than " + std::to_string(kSlotsMax) + " queue pairs on one device";
  Address address;
  if (reason.empty()) reason = make_address(options.active, &address);
  const std::uint32_t sends = QueuePair::device_sends(options, *this);
  errno = 0;  // some drivers refuse without setting errno, and an earlier error must not be reported
  CompletionQueue::DeviceCq* device_cq =
      reason.empty() ? queue.reserve(sends + options.recv_wr_max, shared == nullptr ? 0 : shared->capacity())
                     : nullptr;
  QpPtr qp;
  std::uint64_t bytes = 0;
  if (device_cq != nullptr) {
    const EntryRoom room = entry_room(options, can);
    ibv_qp_init_attr init =
        reliable(device_cq->cq.get(), sends, options.recv_wr_max, room.sges, room.inline_bytes);
    init.qp_type = type_on_device(options.type);
    if (shared != nullptr) init.srq = shared->srq().get();
    qp.reset(ibv_create_qp(pd_.get(), &init));
    bytes = ring_bytes(init.cap);
  }
  if (qp == nullptr) {
    if (reason.empty())
      reason =
          "cannot make a " + std::string(device_cq == nullptr ? "completion queue" : "queue pair") + " on " +
          can.name + ": " + why_refused(errno) +
          (device_cq == nullptr ? "" : budget("max_qp", counters_.queue_pairs, probed_.attributes.max_qp));
    if (device_cq != nullptr) queue.retire(*device_cq, sends + options.recv_wr_max);
    if (error != nullptr) *error = reason;
    return nullptr;
  }
  return std::make_unique<QueuePair>(*this, queue, *device_cq, options, std::move(qp), address, bytes);
}

std::unique_ptr<fabric::ReceiveQueue> Device::create_receive_queue(fabric::CompletionQueue& cq,
                                                                   std::uint32_t receives,
                                                                   std::string* error) {
  const Capabilities& can = capabilities();
  if (can.max_srq_wr == 0) return fabric::Device::create_receive_queue(cq, receives, error);
  auto& queue = static_cast<CompletionQueue&>(cq);
  std::string reason;
  SrqPtr srq;
  ibv_srq_init_attr init{nullptr, {receives, 1, 0}};
  if (receives == 0 || receives > can.max_srq_wr) {
    reason = std::to_string(receives) + " shared receives are outside 1 to max_srq_wr (" +
             std::to_string(can.max_srq_wr) + ") of " + can.name;
  } else if (queue.shares_receives()) {
    reason = "the completion queue has a shared receive queue already";
  } else {
    errno = 0;
    srq.reset(ibv_create_srq(pd_.get(), &init));
    if (srq == nullptr)
      reason = can.name + " cannot create a queue of " + std::to_string(receives) +
               " shared receives: " + why_refused(errno);
  }
  if (srq != nullptr)
    return std::make_unique<ReceiveQueue>(*this, queue, std::move(srq), receives, queue.next_generation());
  if (error != nullptr) *error = reason;
  return nullptr;
}

void Device::enter_on_shared(QueuePair& qp) { on_shared_[qp.qp_num()] = &qp; }

std::uint32_t Device::enter(QueuePair& qp) {
  auto free = std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.qp == nullptr; });
  if (free == slots_.end()) free = slots_.insert(free, Slot{});
  free->qp = &qp;
  free->generation = (free->generation + 1) % kGenerations;
  return free->generation << 16 | static_cast<std::uint32_t>(free - slots_.begin());
}

void Device::leave(const QueuePair& qp, std::uint32_t slot) {
  slots_[slot & 0xffff].qp = nullptr;
  // In the meantime, another queue pair may have got the same number.
  if (const auto found = on_shared_.find(qp.qp_num()); found != on_shared_.end() && found->second == &qp)
    on_shared_.erase(found);
}

}  // namespace rdma_rpc::fabric::verbs
