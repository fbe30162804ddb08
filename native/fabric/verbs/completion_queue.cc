// See completion_queue.h.
#include "fabric/verbs/completion_queue.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>

#include "fabric/verbs/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr int kBatch = 32;
/// Acknowledging takes a lock of the library.
constexpr unsigned kEventsPerAck = 64;
/// "A key was invalidated". The kernel's bit for it is the library's IBV_WC_IP_CSUM_OK, and soft-RoCE, which
/// fills in completions in the kernel, sets that one. Checksums are news on datagram queue pairs only: on a
/// reliable connection either bit means the key.
constexpr unsigned kWithInvalidate = IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK;

WcStatus status_of(ibv_wc_status status, bool receive) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return WcStatus::success;
    case IBV_WC_LOC_LEN_ERR:
      return WcStatus::loc_len_err;
    // Of a receive soft-RoCE says so when its scatter entry is wrong.
    case IBV_WC_LOC_QP_OP_ERR:
      return receive ? WcStatus::loc_prot_err : WcStatus::loc_qp_op_err;
    case IBV_WC_LOC_PROT_ERR:
      return WcStatus::loc_prot_err;
    case IBV_WC_WR_FLUSH_ERR:
      return WcStatus::wr_flush_err;
    case IBV_WC_MW_BIND_ERR:
      return WcStatus::mw_bind_err;
    // Of a receive soft-RoCE says so when the message is too long for it.
    case IBV_WC_REM_INV_REQ_ERR:
      return receive ? WcStatus::loc_len_err : WcStatus::rem_inv_req_err;
    case IBV_WC_REM_ACCESS_ERR:
      return WcStatus::rem_access_err;
    case IBV_WC_RETRY_EXC_ERR:
      return WcStatus::retry_exc_err;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return WcStatus::rnr_retry_exc_err;
    case IBV_WC_REM_ABORT_ERR:
      return WcStatus::rem_abort_err;
    default:
      return WcStatus::general_err;
  }
}

}  // namespace

CompletionQueue::CompletionQueue(Device& device, ChannelPtr channel, CqPtr cq, int epoll)
    : device_(device), channel_(std::move(channel)), cq_(std::move(cq)), epoll_(epoll) {
  device_.counts().open_fds += 2;
}

CompletionQueue::~CompletionQueue() {
  if (events_ > 0) ibv_ack_cq_events(cq_.get(), events_);
  ::close(epoll_);
  device_.counts().open_fds -= 2;
}

bool CompletionQueue::translate(const ibv_wc& from, Wc& to) const {
  QueuePair* qp = device_.find(static_cast<std::uint32_t>(from.wr_id >> 32) & 0x7fffffff);
  if (qp == nullptr) return false;
  const bool receive = (from.wr_id >> 63) != 0;
  const Entry* entry = qp->queue(receive).complete(static_cast<std::uint32_t>(from.wr_id));
  if (entry == nullptr) return false;
  to = {};
  to.wr_id = entry->wr_id;
  to.status = status_of(from.status, receive);
  to.opcode = entry->opcode;
  to.qp_num = qp->qp_num();
  to.bytes = entry->bytes;
  if (to.status != WcStatus::success) {
    if (entry->status != WcStatus::success && to.status != WcStatus::wr_flush_err) to.status = entry->status;
    qp->to_error();
  } else if (receive) {
    to.bytes = from.byte_len;
    if (from.opcode == IBV_WC_RECV_RDMA_WITH_IMM) to.opcode = Opcode::recv_rdma_with_imm;
    to.has_imm = (from.wc_flags & IBV_WC_WITH_IMM) != 0;
    if (to.has_imm) to.imm = ntohl(from.imm_data);
    if (!to.has_imm && (from.wc_flags & kWithInvalidate) != 0) to.invalidated_rkey = from.invalidated_rkey;
  }
  return true;
}

std::size_t CompletionQueue::poll(std::span<Wc> out) {
  std::size_t count = 0;
  while (count < out.size()) {
    ibv_wc batch[kBatch];
    int got = 0;
    if (stashed_) {
      batch[0] = stash_;
      stashed_ = false;
      got = 1;
    } else {
      got = ibv_poll_cq(cq_.get(), std::min(kBatch, static_cast<int>(out.size() - count)), batch);
    }
    if (got <= 0) break;
    for (int i = 0; i < got; ++i) count += translate(batch[i], out[count]) ? 1u : 0u;
  }
  return failed_.empty() ? count : count + poll_failed(out.subspan(count));
}

std::size_t CompletionQueue::poll_failed(std::span<Wc> out) {
  std::size_t count = 0;
  for (QueuePair* qp : failed_) count += qp->poll_failed(out.subspan(count));
  return count;
}

bool CompletionQueue::arm() {
  device_.read_async_events();
  if (stashed_ || ibv_req_notify_cq(cq_.get(), 0) != 0) return false;
  stashed_ = ibv_poll_cq(cq_.get(), 1, &stash_) > 0;
  return !stashed_ && std::none_of(failed_.begin(), failed_.end(), [](QueuePair* qp) {
    return qp->queue(false).next_failed() != nullptr || qp->queue(true).next_failed() != nullptr;
  });
}

void CompletionQueue::acknowledge() {
  ibv_cq* cq = nullptr;
  void* data = nullptr;
  while (ibv_get_cq_event(channel_.get(), &cq, &data) == 0) ++events_;
  if (events_ >= kEventsPerAck) {
    ibv_ack_cq_events(cq_.get(), events_);
    events_ = 0;
  }
  device_.read_async_events();
}

void CompletionQueue::has_failed(QueuePair& qp) { failed_.push_back(&qp); }

void CompletionQueue::forget(const QueuePair& qp) { std::erase(failed_, &qp); }

}  // namespace rdma_rpc::fabric::verbs
