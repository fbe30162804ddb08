// See shared_receives.h.
#include "checked/shared_receives.h"

#include <utility>

#include "checked/records.h"

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

Refusal SharedReceives::post(std::span<const double> rows, std::size_t count) {
  if (count > room())
    return no_room("shared receive", "wrMax", room(), static_cast<std::uint32_t>(slots_.slots.size()), count);
  reader_.begin(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t slot = slots_.free[slots_.free.size() - 1 - i];
    Refusal why = reader_.recv(rows.subspan(i * recv_record::words, recv_record::words), i,
                               source_bits(source_) | slot);
    if (why.none()) continue;
    reader_.end();
    return why;
  }
  const std::size_t taken = queue_->post(reader_.receives());
  for (std::size_t i = 0; i < taken; ++i) {
    slots_.slots[slots_.free.back()] = {{rows[i * recv_record::words], fabric::Opcode::recv},
                                        reader_.kept(i)[0]};
    slots_.free.pop_back();
  }
  reader_.end();
  return taken == count ? Refusal() : not_taken(taken, count);
}

}  // namespace rdma_rpc::checked
