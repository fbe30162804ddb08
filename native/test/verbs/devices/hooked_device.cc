// See hooked_device.h.
#include "verbs/devices/hooked_device.h"

#include <algorithm>
#include <vector>

namespace rdma_rpc::session::test {
namespace {

class HookedQueuePair final : public fabric::QueuePair {
 public:
  HookedQueuePair(std::unique_ptr<fabric::QueuePair> qp, std::shared_ptr<const Hooks> hooks)
      : qp_(std::move(qp)), hooks_(std::move(hooks)) {
    qp_num_ = qp_->qp_num();
  }
  fabric::QpState state() const override { return qp_->state(); }
  std::vector<std::byte> local_address() const override { return qp_->local_address(); }
  std::string connect(std::span<const std::byte> peer) override { return qp_->connect(peer); }
  std::string error() const override { return qp_->error(); }
  std::size_t post_recv(std::span<const fabric::RecvWr> requests) override {
    return qp_->post_recv(requests);
  }
  void to_error() override { qp_->to_error(); }

  std::size_t post_send(std::span<const fabric::SendWr> requests) override {
    if (hooks_->takes) requests = requests.first(std::min(hooks_->takes(requests), requests.size()));
    if (!hooks_->before && !hooks_->after) return qp_->post_send(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (hooks_->before) hooks_->before(requests[i]);
      if (qp_->post_send(requests.subspan(i, 1)) == 0) return i;
      if (hooks_->after) hooks_->after(requests[i]);
    }
    return requests.size();
  }

 private:
  std::unique_ptr<fabric::QueuePair> qp_;
  std::shared_ptr<const Hooks> hooks_;
};

class HookedCompletionQueue final : public fabric::CompletionQueue {
 public:
  HookedCompletionQueue(std::unique_ptr<fabric::CompletionQueue> cq, std::shared_ptr<const Hooks> hooks)
      : cq_(std::move(cq)), hooks_(std::move(hooks)) {}
  std::size_t poll(std::span<fabric::Wc> out) override {
    if (!hooks_->sends_first) {
      const std::size_t polled = cq_->poll(out);
      for (fabric::Wc& wc : out.first(hooks_->polled ? polled : 0)) hooks_->polled(wc);
      return polled;
    }
    fabric::Wc wc;
    while (cq_->poll({&wc, 1}) == 1) waiting_.push_back(wc);
    std::stable_partition(waiting_.begin(), waiting_.end(),
                          [](const fabric::Wc& each) { return each.opcode != fabric::Opcode::recv; });
    const std::size_t count = std::min(out.size(), waiting_.size());
    std::copy_n(waiting_.begin(), count, out.begin());
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  bool arm() override { return waiting_.empty() && cq_->arm(); }
  void acknowledge() override { cq_->acknowledge(); }
  int fd() const override { return cq_->fd(); }
  bool peer_shares_cpu() const override { return cq_->peer_shares_cpu(); }
  fabric::CompletionQueue& inner() { return *cq_; }

 private:
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::shared_ptr<const Hooks> hooks_;
  std::vector<fabric::Wc> waiting_;
};

constexpr char kRefused[] = "refused by the test";

}  // namespace

std::unique_ptr<fabric::HostMemory> HookedDevice::alloc_memory(std::size_t bytes, std::string_view purpose) {
  return hooks_->grant() ? device_->alloc_memory(bytes, purpose) : nullptr;
}

std::unique_ptr<fabric::MemoryRegion> HookedDevice::reg_mr(void* addr, std::size_t length,
                                                           std::uint32_t access, std::string* error) {
  if (hooks_->grant()) return device_->reg_mr(addr, length, access, error);
  *error = kRefused;
  return nullptr;
}

std::unique_ptr<fabric::MemoryWindow> HookedDevice::alloc_mw() {
  return hooks_->grant() ? device_->alloc_mw() : nullptr;
}

std::unique_ptr<fabric::CompletionQueue> HookedDevice::create_cq(std::uint32_t entries) {
  auto cq = hooks_->grant() ? device_->create_cq(entries) : nullptr;
  if (cq == nullptr) return nullptr;
  return std::make_unique<HookedCompletionQueue>(std::move(cq), hooks_);
}

std::unique_ptr<fabric::QueuePair> HookedDevice::create_qp(fabric::CompletionQueue& cq,
                                                           const fabric::QpOptions& options,
                                                           std::string* error) {
  if (!hooks_->grant()) {
    *error = kRefused;
    return nullptr;
  }
  auto qp = device_->create_qp(static_cast<HookedCompletionQueue&>(cq).inner(), options, error);
  if (qp == nullptr) return nullptr;
  return std::make_unique<HookedQueuePair>(std::move(qp), hooks_);
}

}  // namespace rdma_rpc::session::test
