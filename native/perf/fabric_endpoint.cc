// See fabric_endpoint.h.
#include "perf/fabric_endpoint.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rdma_rpc::perf {
namespace {

/// Limit of requests per post and of completions per poll.
constexpr std::size_t kBatch = 32;

fabric::Opcode opcode_of(Verb verb) {
  return verb == Verb::send    ? fabric::Opcode::send
         : verb == Verb::write ? fabric::Opcode::rdma_write
                               : fabric::Opcode::rdma_read;
}

class FabricEndpoint final : public Endpoint {
 public:
  FabricEndpoint(std::shared_ptr<fabric::Device> device, const EndpointOptions& options)
      : device_(std::move(device)) {
    const fabric::Capabilities& can = device_->capabilities();
    limits_.device = can.name;
    limits_.message_max = std::min<std::uint64_t>(can.max_msg_bytes, UINT32_MAX);
    limits_.inline_max = std::min(can.max_inline, options.inline_max);
    limits_.moves_in_poll = can.reads_memory_late;
  }

  std::string open(const EndpointOptions& options) {
    host_ = device_->alloc_memory(options.memory_bytes, "the messages of perf");
    if (host_ == nullptr) return device_->refusal();
    std::string error;
    // The memory includes the destinations of READs, which on iWARP must be writable by the peer.
    region_ = device_->reg_mr(
        host_->data(), host_->size(),
        fabric::access_local_write | fabric::access_remote_write | fabric::access_remote_read, &error);
    if (region_ == nullptr) return error;
    cq_ = device_->create_cq(options.queue_pairs * (options.send_wr_max + options.recv_wr_max));
    if (cq_ == nullptr) return device_->refusal();
    for (std::uint32_t i = 0; i < options.queue_pairs; ++i) {
      auto made = device_->create_qp(
          *cq_,
          {.send_wr_max = options.send_wr_max, .recv_wr_max = options.recv_wr_max, .active = options.active},
          &error);
      if (made == nullptr) return error;
      queue_pairs_.push_back(std::move(made));
    }
    return {};
  }

  const Limits& limits() const override { return limits_; }
  std::byte* data() override { return host_->data(); }
  Memory memory() const override { return {region_->addr(), region_->length(), region_->rkey()}; }
  std::vector<std::byte> address(std::uint32_t queue_pair) const override {
    return queue_pairs_[queue_pair]->local_address();
  }

  std::string connect(std::uint32_t queue_pair, std::span<const std::byte> peer) override {
    return queue_pairs_[queue_pair]->connect(peer);
  }
  std::string reach(const Memory& peer) override {
    peer_ = peer;
    for (const auto& each : queue_pairs_) {
      std::string why = each->reach(peer.rkey, peer.addr, peer.bytes);
      if (!why.empty()) return why;
    }
    return {};
  }
  bool is_connected(std::uint32_t queue_pair) const override {
    return queue_pairs_[queue_pair]->state() == fabric::QpState::rts;
  }
  std::string error(std::uint32_t queue_pair) const override {
    const fabric::QueuePair& found = *queue_pairs_[queue_pair];
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
        to.inline_data = given.verb != Verb::read && given.length <= limits_.inline_max;
        to.sges = {&sges_[i], 1};
        to.remote_addr = peer_.addr + given.to;
        to.rkey = peer_.rkey;
      }
      const std::size_t posted = queue_pairs_[queue_pair]->post_send({work_.data(), count});
      taken += posted;
      if (posted < count) break;
    }
    return taken;
  }
  bool post_receive(std::uint32_t queue_pair, std::uint64_t id, std::uint64_t to,
                    std::uint32_t length) override {
    const fabric::RecvWr work{id, {region_->addr() + to, length, region_->lkey()}};
    return queue_pairs_[queue_pair]->post_recv({&work, 1}) == 1;
  }

  std::size_t poll(std::span<Completion> out) override {
    const std::size_t count = cq_->poll({found_.data(), std::min(out.size(), kBatch)});
    for (std::size_t i = 0; i < count; ++i) {
      const fabric::Wc& from = found_[i];
      const bool good = from.status == fabric::WcStatus::success && !from.memory_gone;
      out[i] = {.id = from.wr_id,
                .received = good && from.opcode == fabric::Opcode::recv,
                .bytes = from.bytes,
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
  // In the order of their dependencies: the last is destroyed first.
  std::shared_ptr<fabric::Device> device_;
  std::unique_ptr<fabric::HostMemory> host_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::vector<std::unique_ptr<fabric::QueuePair>> queue_pairs_;
  Limits limits_;
  Memory peer_;
  // Kept between posts, since building them anew for each message takes longer than sending one.
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
