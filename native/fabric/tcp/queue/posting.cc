// Posts requests, executes local requests, and handles completions. See queue_pair.h.
#include <algorithm>

#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric::tcp {

std::size_t QueuePair::post_send(std::span<const SendWr> requests) {
  std::size_t taken = 0;
  if (state_ == QpState::init || state_ == QpState::rtr) return taken;
  for (const SendWr& wr : requests) {
    if (sends_.is_full()) break;
    sends_.post(wr);
    ++taken;
  }
  if (taken == 0) return taken;
  if (state_ == QpState::err) {
    flush_queues();
    return taken;
  }
  // Local requests are not delayed by requests that wait for the socket: a window must end as soon as its
  // user asks for it.
  carry_out_local();
  if (in_ == In::gone && state_ == QpState::rts) sends_.fail_oldest(WcStatus::retry_exc_err);
  retire();
  if (socket_ && !coalesces(requests.first(taken))) flush();
  return taken;
}

/// Returns whether the requests that were posted last wait for more (Coalescing). Only messages wait.
bool QueuePair::coalesces(std::span<const SendWr> posted) {
  const auto is_message = [](const SendWr& wr) { return is_send(wr.opcode); };
  if (!options_.polls_on || out_ != Out::free || !std::all_of(posted.begin(), posted.end(), is_message))
    return false;
  const std::uint32_t messages = coalesced_ + static_cast<std::uint32_t>(posted.size());
  if (!cq_.may_coalesce(messages)) return false;
  coalesced_ = messages;
  wants_turn();
  return true;
}

std::size_t QueuePair::post_recv(std::span<const RecvWr> requests) {
  const std::size_t taken = receives_.post(requests);
  if (state_ == QpState::err) flush_queues();
  return taken;
}

/// Executes the local requests that come next. Completions keep their order, even behind unsignaled requests.
/// The end of an unsignaled request is not reported by itself. If a completion waits for it, an ack is
/// requested for it.
void QueuePair::carry_out_local() {
  while (!sends_.all_started()) {
    SendSlot& slot = sends_.next();
    const bool good = slot.status == WcStatus::success;
    if (good && (!is_local(slot.opcode) || sends_.must_wait())) return;
    if (good && slot.opcode == Opcode::bind_mw) {
      slot.status = device_.keys().bind(slot.bind, qp_num_);
      acks_.wanted = true;
    } else if (good && !device_.keys().invalidate(slot.key, qp_num_)) {
      slot.status = WcStatus::loc_qp_op_err;
    }
    const bool failed = slot.status != WcStatus::success;
    if ((slot.signaled || failed) && !slot.asked && sends_.is_unacked()) acks_.question = true;
    slot.asked = true;
    if (failed) return;
    sends_.started();
  }
}

bool QueuePair::revoke(std::uint32_t rkey) {
  if (!device_.keys().revoke(rkey, qp_num_)) return false;
  batch_.keep(rkey);
  return true;
}

void QueuePair::retire() {
  if (state_ == QpState::err) return;
  while (const SendSlot* slot = sends_.retire()) {
    complete_send(*slot, slot->status);
    if (slot->status != WcStatus::success) return enter_error(Op::gone);
  }
}

void QueuePair::complete_send(const SendSlot& slot, WcStatus status) {
  const Wc wc{.wr_id = slot.wr_id,
              .status = status,
              .opcode = slot.opcode,
              .qp_num = qp_num_,
              .bytes = slot.bytes,
              .memory_gone = slot.memory_gone || slot.abandoned};
  cq_.push({wc, this, false, sends_.retired()});
}

/// Completes the oldest receive with `wc`.
void QueuePair::complete_receive(Wc wc) {
  wc.wr_id = receives_.oldest().wr_id;
  wc.qp_num = qp_num_;
  receives_.use(wc.receives);
  cq_.push({wc, this, true, 0});
}

}  // namespace rdma_rpc::fabric::tcp
