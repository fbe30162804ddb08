// See fabric_endpoint.h.
#include "perf/fabric_endpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "fabric/receive_queue.h"

namespace rdma_rpc::perf {
namespace {

/// Limit of requests per post and of completions per poll.
constexpr std::size_t kBatch = 32;

using fabric::Feature;

/// The Q_Key for datagrams, on both sides.
constexpr std::uint32_t kQkey = 0x11111111;
/// ff15::7065:7266, a transient group of the local site.
constexpr fabric::Gid kGroup{std::byte{0xff},
                             std::byte{0x15},
                             {},
                             {},
                             {},
                             {},
                             {},
                             {},
                             {},
                             {},
                             {},
                             {},
                             std::byte{0x70},
                             std::byte{0x65},
                             std::byte{0x72},
                             std::byte{0x66}};

/// The data about a queue pair for datagrams that a peer needs. Both sides have the same version and byte
/// order.
struct DatagramAddress {
  std::uint32_t magic = 0x31647266;  ///< with any other value the bytes are not such an address
  std::uint32_t qp_num = 0;
  fabric::Gid gid{};
};

fabric::Opcode opcode_of(Verb verb) {
  switch (verb) {
    case Verb::send:
      return fabric::Opcode::send;
    case Verb::write:
      return fabric::Opcode::rdma_write;
    case Verb::read:
      return fabric::Opcode::rdma_read;
    case Verb::fetch_add:
      return fabric::Opcode::atomic_fetch_and_add;
    case Verb::compare_swap:
      return fabric::Opcode::atomic_cmp_and_swp;
  }
  return fabric::Opcode::send;
}

bool is_atomic(Verb verb) { return verb == Verb::fetch_add || verb == Verb::compare_swap; }

fabric::QpType type_of(Transport transport) {
  return transport == Transport::rc   ? fabric::QpType::rc
         : transport == Transport::uc ? fabric::QpType::uc
                                      : fabric::QpType::ud;
}

/// Returns "", or the reason why the device cannot run this test.
std::string why_not(const fabric::Capabilities& can, const EndpointOptions& options) {
  std::string why;
  if (options.transport == Transport::uc) why = can.why_not(Feature::uc);
  if (options.transport == Transport::ud) why = can.why_not(Feature::ud);
  if (why.empty() && options.multicast) why = can.why_not(Feature::multicast);
  if (why.empty() && options.shared_receives) why = can.why_not(Feature::shared_receives);
  return why;
}

class FabricEndpoint final : public Endpoint {
 public:
  FabricEndpoint(std::shared_ptr<fabric::Device> device, const EndpointOptions& options)
      : device_(std::move(device)), transport_(options.transport), multicast_(options.multicast) {
    const fabric::Capabilities& can = device_->capabilities();
    const bool datagrams = transport_ == Transport::ud;
    limits_.device = can.name;
    limits_.message_max =
        datagrams ? can.max_datagram_bytes : std::min<std::uint64_t>(can.max_msg_bytes, UINT32_MAX);
    limits_.atomic = can.atomics && transport_ == Transport::rc;
    limits_.reliable = transport_ == Transport::rc;
    limits_.header_bytes = datagrams ? fabric::kGrhBytes : 0;
    limits_.inline_max = std::min(can.max_inline, options.inline_max);
    limits_.moves_in_poll = can.reads_memory_late;
  }

  std::string open(const EndpointOptions& options) {
    if (std::string why = why_not(device_->capabilities(), options); !why.empty()) return why;
    host_ = device_->alloc_memory(options.memory_bytes, "the messages of perf");
    if (host_ == nullptr) return device_->refusal();
    std::string error;
    // The memory includes the destinations of READs, which the peer must be able to write on iWARP.
    region_ =
        device_->reg_mr(host_->data(), host_->size(),
                        fabric::access_local_write | fabric::access_remote_write |
                            fabric::access_remote_read | (limits_.atomic ? fabric::access_remote_atomic : 0u),
                        &error);
    if (region_ == nullptr) return error;
    cq_ = device_->create_cq(options.queue_pairs * (options.send_wr_max + options.recv_wr_max));
    if (cq_ == nullptr) return device_->refusal();
    if (options.shared_receives) {
      receives_ = device_->create_receive_queue(*cq_, options.queue_pairs * options.recv_wr_max, &error);
      if (receives_ == nullptr) return error;
    }
    for (std::uint32_t i = 0; i < options.queue_pairs; ++i) {
      auto made = device_->create_qp(*cq_,
                                     {.type = type_of(transport_),
                                      .qkey = transport_ == Transport::ud ? kQkey : 0u,
                                      .send_wr_max = options.send_wr_max,
                                      .recv_wr_max = receives_ == nullptr ? options.recv_wr_max : 0u,
                                      .active = options.active,
                                      .shared_receives = receives_.get(),
                                      .tag = i},
                                     &error);
      if (made == nullptr) return error;
      queues_.push_back({std::move(made), nullptr, 0});
    }
    return {};
  }

  const Limits& limits() const override { return limits_; }
  std::byte* data() override { return host_->data(); }
  Memory memory() const override { return {region_->addr(), region_->length(), region_->rkey()}; }
  std::vector<std::byte> address(std::uint32_t queue_pair) const override {
    if (transport_ != Transport::ud) return queues_[queue_pair].qp->local_address();
    DatagramAddress own;
    own.qp_num = queues_[queue_pair].qp->qp_num();
    own.gid = device_->gid();
    std::vector<std::byte> bytes(sizeof own);
    std::memcpy(bytes.data(), &own, sizeof own);
    return bytes;
  }

  std::string connect(std::uint32_t queue_pair, std::span<const std::byte> peer) override {
    Queue& queue = queues_[queue_pair];
    if (transport_ != Transport::ud) return queue.qp->connect(peer);
    DatagramAddress there;
    const std::uint32_t magic = there.magic;
    if (peer.size() != sizeof there) return "the peer's address is none of datagrams";
    std::memcpy(&there, peer.data(), sizeof there);
    if (there.magic != magic) return "the peer's address is none of datagrams";
    std::string why;
    queue.peer = device_->create_ah({.gid = multicast_ ? kGroup : there.gid}, &why);
    queue.peer_qp_num = multicast_ ? fabric::kMulticastQpn : there.qp_num;
    if (queue.peer == nullptr) return why;
    why = queue.qp->connect({});
    return why.empty() && multicast_ ? queue.qp->attach_multicast(kGroup) : why;
  }
  std::string reach(const Memory& peer) override {
    peer_ = peer;
    for (const auto& each : queues_) {
      std::string why = each.qp->reach(peer.rkey, peer.addr, peer.bytes);
      if (!why.empty()) return why;
    }
    return {};
  }
  bool is_connected(std::uint32_t queue_pair) const override {
    return queues_[queue_pair].qp->state() == fabric::QpState::rts;
  }
  std::string error(std::uint32_t queue_pair) const override {
    const fabric::QueuePair& found = *queues_[queue_pair].qp;
    if (found.state() != fabric::QpState::err) return {};
    std::string why = found.error();
    return why.empty() ? "the queue pair is in ERR" : why;
  }

  std::size_t post(std::uint32_t queue_pair, std::span<const Request> requests) override {
    std::size_t taken = 0;
    while (taken < requests.size()) {
      const std::size_t count = std::min(kBatch, requests.size() - taken);
      for (std::size_t i = 0; i < count; ++i) {
        const Request& given = requests[taken + i];
        sges_[i] = {region_->addr() + given.from, given.length, region_->lkey()};
        fabric::SendWr& to = work_[i];
        to.wr_id = given.id;
        to.opcode = opcode_of(given.verb);
        to.signaled = given.signaled;
        to.inline_data =
            (given.verb == Verb::send || given.verb == Verb::write) && given.length <= limits_.inline_max;
        to.sges = {&sges_[i], 1};
        to.remote_addr = peer_.addr + given.to;
        to.rkey = peer_.rkey;
        if (is_atomic(given.verb)) to.atomic = {given.operand, given.swap};
        if (transport_ == Transport::ud)
          to.ud = {queues_[queue_pair].peer.get(), queues_[queue_pair].peer_qp_num, kQkey};
      }
      const std::size_t posted = queues_[queue_pair].qp->post_send({work_.data(), count});
      taken += posted;
      if (posted < count) break;
    }
    return taken;
  }
  bool post_receive(std::uint32_t queue_pair, std::uint64_t id, std::uint64_t to,
                    std::uint32_t length) override {
    const fabric::RecvWr work{id, {region_->addr() + to, length, region_->lkey()}};
    if (receives_ != nullptr) return receives_->post({&work, 1}) == 1;
    return queues_[queue_pair].qp->post_recv({&work, 1}) == 1;
  }

  std::size_t poll(std::span<Completion> out) override {
    const std::size_t count = cq_->poll({found_.data(), std::min(out.size(), kBatch)});
    for (std::size_t i = 0; i < count; ++i) {
      const fabric::Wc& from = found_[i];
      const bool good = from.status == fabric::WcStatus::success && !from.memory_gone;
      const bool received = good && from.opcode == fabric::Opcode::recv;
      // A group has one queue pair of each side.
      const bool looped_back = received && multicast_ && from.src_qp == queues_[0].qp->qp_num();
      out[i] = {.id = from.wr_id == fabric::kNoReceive ? 0 : from.wr_id,
                .received = received,
                .bytes = from.bytes - std::min(from.bytes, received ? limits_.header_bytes : 0),
                .queue_pair = receives_ != nullptr && from.tag < queues_.size() ? from.tag : 0,
                .looped_back = looped_back,
                .failure = good               ? nullptr
                           : from.memory_gone ? "the peer's memory is gone"
                                              : fabric::to_string(from.status)};
    }
    return count;
  }
  bool arm() override { return cq_->arm(); }
  void acknowledge() override { cq_->acknowledge(); }
  int fd() const override { return cq_->fd(); }

 private:
  struct Queue {
    std::unique_ptr<fabric::QueuePair> qp;
    std::unique_ptr<fabric::AddressHandle> peer;  ///< address handle for datagrams
    std::uint32_t peer_qp_num = 0;
  };

  // Members in the order of their dependencies: the last is destroyed first.
  std::shared_ptr<fabric::Device> device_;
  std::unique_ptr<fabric::HostMemory> host_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::unique_ptr<fabric::ReceiveQueue> receives_;  ///< null when each queue pair has receives of its own
  std::vector<Queue> queues_;
  const Transport transport_;
  const bool multicast_;
  Limits limits_;
  Memory peer_;
  // These arrays are kept between posts, because building them again for each message takes longer than
  // sending a message.
  std::array<fabric::Sge, kBatch> sges_;
  std::array<fabric::SendWr, kBatch> work_;
  std::array<fabric::Wc, kBatch> found_;
};

}  // namespace

std::unique_ptr<Endpoint> make_fabric_endpoint(std::shared_ptr<fabric::Device> device,
                                               const EndpointOptions& options, std::string* error) {
  auto made = std::make_unique<FabricEndpoint>(std::move(device), options);
  *error = made->open(options);
  if (!error->empty()) return nullptr;
  return made;
}

}  // namespace rdma_rpc::perf
