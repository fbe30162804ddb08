// See shared_receives.h.
#include "checked/shared_receives.h"

#include <utility>

namespace rdma_rpc::checked {

SharedReceives::Slots::Slots(std::uint32_t depth) : slots(depth) {
  free.reserve(depth);
  for (std::uint32_t i = depth; i > 0; --i) free.push_back(i - 1);
}

Request SharedReceives::Slots::complete(std::uint32_t slot) {
  if (slot >= slots.size() || slots[slot].kept == nullptr) return {};
  slots[slot].kept.reset();
  free.push_back(slot);
  return slots[slot].request;
}

SharedReceives::SharedReceives(std::shared_ptr<CompletionQueue> cq, const Resources& resources,
                               const fabric::Capabilities& capabilities,
                               std::unique_ptr<fabric::ReceiveQueue> queue)
    : cq_(std::move(cq)),
      reader_(resources, capabilities, fabric::QpType::rc, 1),
      slots_(queue->capacity()),
      source_(cq_->add_source(slots_)),
      queue_(std::move(queue)) {}

SharedReceives::~SharedReceives() {
  queue_.reset();  // its receives use the memory that the members before it keep alive
  cq_->remove_source(source_);
}

Refusal SharedReceives::post(std::span<const double> rows, std::size_t count, double stamp) {
  if (count > room())
    return no_room("shared receive", "wrMax", room(), static_cast<std::uint32_t>(slots_.slots.size()), count);
  if (!reader_.has_read(count, stamp)) {
    if (Refusal why = reader_.read_receives(rows, count, stamp); !why.none()) return why;
  }
  const std::span<fabric::RecvWr> receives = reader_.receives();
  for (std::size_t i = 0; i < count; ++i)
    receives[i].wr_id = source_bits(source_) | slots_.free[slots_.free.size() - 1 - i];
  const std::size_t taken = queue_->post(receives);
  for (std::size_t i = 0; i < taken; ++i) {
    slots_.slots[slots_.free.back()] = {reader_.posted(i), Kept(reader_.kept(i)[0])};
    slots_.free.pop_back();
  }
  return taken == count ? Refusal() : not_taken(taken, count);
}

}  // namespace rdma_rpc::checked
