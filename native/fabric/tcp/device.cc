// Opens the device and creates the objects that belong to it. See device.h.
#include "fabric/tcp/device.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/tcp/queue/completion_queue.h"
#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric {
namespace tcp {
namespace {

constexpr std::uint32_t kMaxQpWr = 16384;

/// Up to this size, copies take less time than the round trips of a READ, or of a request for memory to write
/// to.
constexpr std::uint32_t kSegmentedBytes = 32 * 1024;

Capabilities make_capabilities() {
  Capabilities caps;
  caps.name = "tcp";
  caps.max_inline = kInlineMax;
  caps.max_sge = kMaxSge;
  caps.max_sge_read = kMaxSge;
  caps.max_qp_wr = kMaxQpWr;
  caps.max_rd_atomic = kReadsMax;
  caps.max_msg_bytes = kMessageBytesMax;
  caps.immediate = true;
  caps.windows = true;
  caps.send_immediate = true;
  caps.atomics = true;
  caps.exposes_any_memory = true;
  caps.reads_memory_late = true;
  caps.segmented_bytes = kSegmentedBytes;
  const std::string one_each = "a TCP connection carries one reliable queue pair";
  for (const Feature feature : {Feature::uc, Feature::ud, Feature::multicast})
    caps.reasons[feature] = one_each;
  caps.reasons[Feature::solicited] =
      "the CPU of this process must read each message before it knows whether it was solicited";
  caps.reasons[Feature::shared_receives] = "on tcp, each connection has receives of its own";
  caps.reasons[Feature::srq_limit] = "it has no shared receives";
  caps.reasons[Feature::drain] = "a request that has begun is part of a stream of bytes";
  caps.reasons[Feature::steps] = "a TCP connection is made in one step";
  caps.reasons[Feature::reset] = "a queue pair in ERR has given its connection away; make another one";
  return caps;
}

class PrivateMemory final : public HostMemory {
 public:
  PrivateMemory(void* data, std::size_t size) : HostMemory(mapped_pages(data, size), size) {}
};

bool refuse(std::string* error, std::string why) {
  if (error != nullptr) *error = "tcp: " + std::move(why);
  return false;
}

}  // namespace

Device::Device(const TcpOptions& options, std::uint32_t key_seed)
    : options_(options), capabilities_(make_capabilities()), protection_(key_seed) {}

std::unique_ptr<HostMemory> Device::alloc_memory(std::size_t bytes, std::string_view) {
  if (bytes == 0) return nullptr;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  return std::make_unique<PrivateMemory>(data, bytes);
}

std::unique_ptr<MemoryRegion> Device::reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                             std::string* error) {
  std::string why = why_not_register(addr, length, access, capabilities_);
  auto region = why.empty() ? software::register_memory(protection_, addr, length, access, &why) : nullptr;
  if (region == nullptr) refuse(error, why);
  return region;
}

std::unique_ptr<MemoryWindow> Device::alloc_mw() { return software::alloc_window(protection_); }

std::unique_ptr<fabric::CompletionQueue> Device::create_cq(std::uint32_t) {
  auto cq = std::make_unique<CompletionQueue>(*this);
  return cq->open() ? std::move(cq) : nullptr;
}

std::unique_ptr<fabric::QueuePair> Device::create_qp(fabric::CompletionQueue& cq, const QpOptions& options,
                                                     std::string* error) {
  if (const std::string why = why_no_queues(options, capabilities_); !why.empty()) {
    refuse(error, why);
    return nullptr;
  }
  Address address;
  address.active = options.active;
  if (!make_token(&address.token)) {
    refuse(error, "no random bytes (getrandom)");
    return nullptr;
  }
  if (!options.active && !be_reachable(&address, error)) return nullptr;
  auto qp =
      std::make_unique<QueuePair>(*this, static_cast<CompletionQueue&>(cq), options, ++last_qp_num_, address);
  queue_pairs_.push_back(qp.get());
  return qp;
}

/// Fills in the endpoint at which the peer reaches a passive queue pair.
bool Device::be_reachable(Address* address, std::string* error) {
  std::string why;
  if (options_.host.empty()) {
    if (acceptor_ == nullptr)
      acceptor_ = Acceptor::open(
          reactor_,
          [this](UniqueFd fd, const ConnectMessage& message) {
            if (prepare(fd.get(), options_).empty()) hand_to_queue_pair(std::move(fd), message);
          },
          &why);
    if (!why.empty()) why = "tcp: " + why;
    if (acceptor_ != nullptr) acceptor_->mark(&address->token);
  } else {
    if (listener_ == nullptr) listener_ = Listener::open(*this, &why);
    if (listener_ != nullptr) address->endpoint = listener_->endpoint();
  }
  if (error != nullptr && !why.empty()) *error = why;
  return why.empty();
}

void Device::hand_to_queue_pair(UniqueFd fd, const ConnectMessage& message) {
  if (QueuePair* qp = find(message.to)) return qp->take({std::move(fd), message.from});
  const ConnectMessage answer = make_connect_message(ConnectKind::unknown, message.from, message.to);
  send_now(fd.get(), &answer, sizeof answer);
}

QueuePair* Device::find(const Token& token) const {
  const auto found = std::find_if(queue_pairs_.begin(), queue_pairs_.end(),
                                  [&](const QueuePair* qp) { return qp->token() == token; });
  return found == queue_pairs_.end() ? nullptr : *found;
}

}  // namespace tcp

std::unique_ptr<Device> open_tcp_device(const TcpOptions& options, std::string* error) {
  std::uint32_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) {
    tcp::refuse(error, "no random bytes (getrandom)");
    return nullptr;
  }
  auto device = std::make_unique<tcp::Device>(options, seed);
  if (!device->open()) {
    tcp::refuse(error, std::string("no epoll or timer descriptor: ") + std::strerror(errno));
    return nullptr;
  }
  return device;
}

}  // namespace rdma_rpc::fabric
