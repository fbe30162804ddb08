// See queue_pair.h.
#include "checked/queue_pair.h"

#include <algorithm>

#include "checked/records.h"

namespace rdma_rpc::checked {
namespace {

using fabric::Opcode;
using fabric::QpState;

}  // namespace

QueuePair::QueuePair(std::shared_ptr<CompletionQueue> cq, const Resources& resources,
                     const fabric::Capabilities& capabilities, const QueuePairOptions& options,
                     std::unique_ptr<fabric::QueuePair> queue_pair)
    : cq_(std::move(cq)),
      shared_(options.shared_receives),
      send_reader_(resources, capabilities, options.fabric.type, options.sge_max),
      recv_reader_(resources, capabilities, options.fabric.type, 1),
      sends_(options.fabric.send_wr_max, options.sge_max + 1),  // one more for the address handle
      receives_(std::max(options.fabric.recv_wr_max, 1u), 1),
      send_source_(cq_->add_source(sends_)),
      recv_source_(cq_->add_source(receives_)),
      queue_pair_(std::move(queue_pair)) {}

QueuePair::~QueuePair() {
  if (shared_ != nullptr) cq_->keep_arrived();
  queue_pair_.reset();  // the requests of the queue pair use objects that the members before it keep alive
  cq_->remove_source(send_source_);
  cq_->remove_source(recv_source_);
}

Refusal QueuePair::post_send(std::span<const double> rows, std::size_t count, std::size_t sges,
                             double stamp) {
  if (count == 0) return why_not_sending();
  if (count > sends_.room()) {
    Refusal why = why_not_sending();
    return why.none() ? no_room("send", "sendWrMax", sends_.room(), sends_.depth(), count) : why;
  }
  if (!send_reader_.has_read(count, stamp)) {
    if (Refusal why = send_reader_.read_sends(rows, count, sges, stamp); !why.none()) {
      Refusal sooner = why_not_sending();
      return sooner.none() ? why : sooner;
    }
  }
  const std::span<fabric::SendWr> requests = send_reader_.sends();
  for (std::uint32_t i = 0; i < count; ++i) requests[i].wr_id = source_bits(send_source_) | sends_.next(i);
  const std::size_t taken = queue_pair_->post_send(requests);
  for (std::size_t i = 0; i < taken; ++i) {
    if (requests[i].opcode == Opcode::bind_mw) send_reader_.note_bind(i);
    sends_.add(send_reader_.posted(i), send_reader_.kept(i));
  }
  if (taken == count) return {};
  Refusal why = taken == 0 ? why_not_sending() : Refusal();
  return why.none() ? not_taken(taken, count) : why;
}

/// The device is asked only when a batch was not accepted, because it answers with a system call.
Refusal QueuePair::why_not_sending() const {
  const QpState state = queue_pair_->state();
  if (state != QpState::reset && state != QpState::init && state != QpState::rtr) return {};
  return refuse(Cause::state, std::string("the queue pair is in ") + fabric::to_string(state) +
                                  ", and sends are posted in RTS: connect it first");
}

Refusal QueuePair::post_recv(std::span<const double> rows, std::size_t count, double stamp) {
  if (shared_ != nullptr)
    return refuse(Cause::state, "the queue pair takes its receives from a shared queue: post them there");
  if (count > receives_.room())
    return no_room("receive", "recvWrMax", receives_.room(), receives_.depth(), count);
  if (!recv_reader_.has_read(count, stamp)) {
    if (Refusal why = recv_reader_.read_receives(rows, count, stamp); !why.none()) return why;
  }
  const std::span<fabric::RecvWr> requests = recv_reader_.receives();
  for (std::uint32_t i = 0; i < count; ++i) requests[i].wr_id = source_bits(recv_source_) | receives_.next(i);
  const std::size_t taken = queue_pair_->post_recv(requests);
  for (std::size_t i = 0; i < taken; ++i) receives_.add(recv_reader_.posted(i), recv_reader_.kept(i));
  if (taken == count) return {};
  if (taken == 0 && queue_pair_->state() == QpState::reset)
    return refuse(Cause::state, "the queue pair is in RESET, and receives are posted from INIT on");
  return not_taken(taken, count);
}

Refusal QueuePair::move_to(QpState state) {
  if (shared_ != nullptr && state == QpState::reset) cq_->keep_arrived();
  if (std::string why = queue_pair_->move_to(state); !why.empty())
    return refuse(Cause::refused, std::move(why));
  if (state != QpState::reset) return {};
  // The device has dropped both queues. Otherwise completions of requests that were posted before the reset
  // would be mistaken for completions of later requests.
  cq_->forget(send_source_);
  cq_->forget(recv_source_);
  sends_.drop();
  receives_.drop();
  return {};
}

}  // namespace rdma_rpc::checked
