// Posts requests and polls completions of an endpoint. See endpoint.h.
#include <algorithm>
#include <array>

#include "perf/bare/endpoint.h"

namespace rdma_rpc::perf::bare {
namespace {

ibv_wr_opcode opcode_of(Verb verb) {
  switch (verb) {
    case Verb::send:
      return IBV_WR_SEND;
    case Verb::write:
      return IBV_WR_RDMA_WRITE;
    case Verb::read:
      return IBV_WR_RDMA_READ;
    case Verb::fetch_add:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case Verb::compare_swap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
  }
  return IBV_WR_SEND;
}

}  // namespace

void BareEndpoint::fill(const Queue& queue, const Request& given, ibv_send_wr* to, ibv_sge* sge) const {
  sge->addr = memory_address_ + given.from;
  sge->length = given.length;
  to->wr_id = given.id;
  to->opcode = opcode_of(given.verb);
  const bool copied =
      given.length <= limits_.inline_max && (given.verb == Verb::send || given.verb == Verb::write);
  to->send_flags = 0;
  if (given.signaled) to->send_flags |= IBV_SEND_SIGNALED;
  if (copied) to->send_flags |= IBV_SEND_INLINE;
  if (transport_ == Transport::ud) {
    to->wr.ud = {queue.peer.get(), queue.peer_qp_num, kQkey};
  } else if (given.verb == Verb::fetch_add || given.verb == Verb::compare_swap) {
    to->wr.atomic = {peer_.addr + given.to, given.operand, given.swap, peer_.rkey};
  } else {
    to->wr.rdma = {peer_.addr + given.to, peer_.rkey};
  }
}

std::size_t BareEndpoint::post(std::uint32_t queue_pair, std::span<const Request> requests) {
  const Queue& queue = queues_[queue_pair];
  const std::size_t count = std::min(kBatch, requests.size());
  if (count == 0) return 0;
  for (std::size_t i = 0; i < count; ++i) fill(queue, requests[i], &work_[i], &sges_[i]);
  // The requests stay linked from earlier posts, except at the end of this list.
  work_[count - 1].next = nullptr;
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(queue.qp.get(), work_.data(), &refused);
  work_[count - 1].next = count < kBatch ? &work_[count] : nullptr;
  if (error == 0) return count;
  return refused == nullptr ? 0 : static_cast<std::size_t>(refused - work_.data());
}

bool BareEndpoint::post_receive(std::uint32_t queue_pair, std::uint64_t id, std::uint64_t to,
                                std::uint32_t length) {
  receive_sge_.addr = memory_address_ + to;
  receive_sge_.length = length;
  receive_.wr_id = id;
  ibv_recv_wr* refused = nullptr;
  if (receives_ != nullptr) return ibv_post_srq_recv(receives_.get(), &receive_, &refused) == 0;
  return ibv_post_recv(queues_[queue_pair].qp.get(), &receive_, &refused) == 0;
}

std::uint32_t BareEndpoint::queue_of(std::uint32_t qp_num) const {
  const auto found = std::find_if(queues_.begin(), queues_.end(),
                                  [&](const Queue& queue) { return queue.qp->qp_num == qp_num; });
  return found == queues_.end() ? 0 : static_cast<std::uint32_t>(found - queues_.begin());
}

std::size_t BareEndpoint::poll(std::span<Completion> out) {
  std::array<ibv_wc, kBatch> found;
  const int wanted = static_cast<int>(std::min(out.size(), kBatch));
  int count = 0;
  if (stashed_) {
    found[0] = stash_;
    stashed_ = false;
    count = 1;
  } else {
    count = std::max(0, ibv_poll_cq(cq_.get(), wanted, found.data()));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const ibv_wc& from = found[i];
    const bool good = from.status == IBV_WC_SUCCESS;
    Completion& to = out[i];
    to.id = from.wr_id;
    to.received = good && (from.opcode & IBV_WC_RECV) != 0;
    to.bytes = to.received ? from.byte_len - std::min(from.byte_len, limits_.header_bytes) : 0;
    to.queue_pair = to.received && receives_ != nullptr ? queue_of(from.qp_num) : 0;
    // A group has one queue pair of each side.
    to.looped_back = to.received && multicast_ && from.src_qp == queues_[0].qp->qp_num;
    to.failure = good ? nullptr : ibv_wc_status_str(from.status);
  }
  return static_cast<std::size_t>(count);
}

bool BareEndpoint::arm() {
  if (ibv_req_notify_cq(cq_.get(), 0) != 0) return false;
  // Completions that arrived before the notification was armed do not trigger it, so this function polls
  // once.
  stashed_ = ibv_poll_cq(cq_.get(), 1, &stash_) > 0;
  return !stashed_;
}

void BareEndpoint::acknowledge() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) ++events_;
}

}  // namespace rdma_rpc::perf::bare
