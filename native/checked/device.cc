// See device.h.
#include "checked/device.h"

#include <algorithm>
#include <utility>

namespace rdma_rpc::checked {
namespace {

constexpr std::uint32_t kKnownAccess = fabric::access_local_write | fabric::access_remote_write |
                                       fabric::access_remote_read | fabric::access_remote_atomic |
                                       fabric::access_on_demand | fabric::access_mw_bind;

}  // namespace

Refusal Device::reg_mr(Memory memory, std::uint32_t access, Ref<Region>* region) {
  if ((access & ~kKnownAccess) != 0) return refuse(Cause::range, "unknown access rights");
  const auto start = reinterpret_cast<std::uintptr_t>(memory.data);
  if (start > static_cast<std::uint64_t>(kExactMax) - memory.size)
    return refuse(Cause::range, "the memory lies above address 2^53, which a number of JS cannot hold");
  std::string why;
  auto made = device_->reg_mr(memory.data, memory.size, access, &why);
  if (made == nullptr) return refuse(Cause::refused, why);
  *region = make_ref<Region>(device_, std::move(memory), std::move(made), access);
  resources_.regions->add(*region);
  return {};
}

Refusal Device::create_cq(std::uint32_t entries, std::shared_ptr<CompletionQueue>* cq) {
  auto made = device_->create_cq(entries);
  if (made == nullptr) {
    const std::string& why = device_->refusal();
    return refuse(Cause::refused, why.empty() ? "the device refused the completion queue" : why);
  }
  *cq = std::make_shared<CompletionQueue>(device_, std::move(made));
  return {};
}

Refusal Device::create_srq(std::shared_ptr<CompletionQueue> cq, std::uint32_t receives,
                           std::shared_ptr<SharedReceives>* srq) {
  const fabric::Capabilities& can = capabilities();
  if (!can.has(fabric::Feature::shared_receives))
    return refuse(Cause::unsupported, can.why_not(fabric::Feature::shared_receives));
  std::string why;
  auto made = device_->create_receive_queue(cq->on_device(), receives, &why);
  if (made == nullptr) return refuse(Cause::refused, why);
  *srq = std::make_shared<SharedReceives>(std::move(cq), resources_, can, std::move(made));
  return {};
}

Refusal Device::create_ah(const fabric::AhAttr& attr, std::uint32_t* number) {
  const fabric::Capabilities& can = capabilities();
  if (!can.has(fabric::Feature::ud)) return refuse(Cause::unsupported, can.why_not(fabric::Feature::ud));
  std::string why;
  auto made = device_->create_ah(attr, &why);
  if (made == nullptr) return refuse(Cause::refused, why);
  *number = resources_.handles->add(make_ref<AddressHandle>(device_, std::move(made)));
  return {};
}

Refusal Device::alloc_mw(std::uint32_t* number) {
  const fabric::Capabilities& can = capabilities();
  if (!can.has(fabric::Feature::windows))
    return refuse(Cause::unsupported, can.why_not(fabric::Feature::windows));
  auto made = device_->alloc_mw();
  if (made == nullptr) return refuse(Cause::refused, "the device has no memory window left");
  *number = resources_.windows->add(make_ref<Window>(device_, std::move(made)));
  return {};
}

Refusal Device::create_qp(std::shared_ptr<CompletionQueue> cq, const QueuePairOptions& options,
                          std::shared_ptr<QueuePair>* qp) {
  const fabric::Capabilities& can = capabilities();
  const fabric::QpType type = options.fabric.type;
  if (type == fabric::QpType::uc && !can.has(fabric::Feature::uc))
    return refuse(Cause::unsupported, can.why_not(fabric::Feature::uc));
  if (type == fabric::QpType::ud && !can.has(fabric::Feature::ud))
    return refuse(Cause::unsupported, can.why_not(fabric::Feature::ud));
  if (options.fabric.stepwise && !can.has(fabric::Feature::steps))
    return refuse(Cause::unsupported, can.why_not(fabric::Feature::steps));
  if (options.shared_receives != nullptr && options.shared_receives->cq() != cq.get())
    return refuse(Cause::range, "the shared receive queue was made for another completion queue");
  if (const auto most = std::max(can.max_sge, can.max_sge_read); options.sge_max > most) {
    return refuse(Cause::range, "sgeMax " + std::to_string(options.sge_max) +
                                    " is more than the device has (" + std::to_string(most) + ")");
  }
  if (std::string why = fabric::why_no_queues(options.fabric, can); !why.empty())
    return refuse(Cause::range, std::move(why));
  std::string why;
  auto made = device_->create_qp(cq->on_device(), options.fabric, &why);
  if (made == nullptr) return refuse(Cause::refused, why);
  *qp = std::make_shared<QueuePair>(std::move(cq), resources_, can, options, std::move(made));
  return {};
}

}  // namespace rdma_rpc::checked
