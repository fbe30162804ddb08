// See completion_queue.h.
#include "fabric/verbs/queue/completion_queue.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "fabric/verbs/queue/queue_pair.h"
#include "fabric/verbs/queue/receive_queue.h"
#include "fabric/verbs/queue/status.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr int kBatch = 32;
/// Acknowledgements are batched because each takes a lock of the library.
constexpr unsigned kEventsPerAck = 64;
/// A user that polls without ever sleeping must also notice that the peer has ended, and the device's events.
/// The check takes three system calls, so it is made once in this number of polls.
constexpr unsigned kPollsPerEventCheck = 4096;
/// Limit of queue pairs that one poll destroys. Each of them takes a command of some 100 us to the firmware,
/// and when a host dies, hundreds of them end at once.
constexpr std::uint32_t kFinishedAtOnce = 32;

std::uint32_t invalidated_key(const ibv_wc& from, const soft::Workaround* workaround) {
  if ((from.wc_flags & IBV_WC_WITH_INV) != 0) return from.invalidated_rkey;
  return workaround == nullptr ? 0 : workaround->invalidated_key(from);
}

}  // namespace

CompletionQueue::CompletionQueue(Device& device, ChannelPtr channel, std::uint32_t entries,
                                 std::uint32_t entries_max, int vector)
    : device_(device),
      channel_(std::move(channel)),
      entries_(std::clamp(entries, 1u, entries_max)),
      entries_max_(entries_max),
      vector_(vector) {
  device_.counts().open_fds += 2;
}

CompletionQueue::~CompletionQueue() {
  for (const auto& device_cq : device_cqs_) {
    if (device_cq->events > 0) ibv_ack_cq_events(device_cq->cq.get(), device_cq->events);
  }
  if (epoll_ >= 0) ::close(epoll_);
  device_.counts().open_fds -= 2;
}

bool CompletionQueue::open() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  const int cm = device_.cm() == nullptr ? -1 : device_.cm()->fd();
  for (const int fd :
       {channel_->fd, device_.context()->async_fd, cm, device_.attempts().fd(), device_.watchdog().fd()}) {
    if (fd < 0) continue;
    epoll_event watch{};
    watch.events = EPOLLIN;
    if (epoll_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &watch) != 0) return false;
  }
  return add_device_cq(entries_) != nullptr;
}

CompletionQueue::DeviceCq* CompletionQueue::add_device_cq(std::uint32_t entries) {
  DeviceCq& device_cq = *device_cqs_.emplace_back(std::make_unique<DeviceCq>());
  device_cq.cq.reset(
      ibv_create_cq(device_.context(), static_cast<int>(entries), &device_cq, channel_.get(), vector_));
  if (device_cq.cq == nullptr) {
    device_cqs_.pop_back();
    return nullptr;
  }
  device_cq.entries = static_cast<std::uint32_t>(device_cq.cq->cqe);
  return &device_cq;
}

CompletionQueue::DeviceCq* CompletionQueue::reserve(std::uint32_t entries, std::uint32_t shared) {
  auto found = std::find_if(device_cqs_.begin(), device_cqs_.end(), [=](const auto& device_cq) {
    const std::uint32_t more = shared - std::min(shared, device_cq->shared);
    return !device_cq->failed && device_cq->entries - device_cq->used >= entries + more;
  });
  if (found != device_cqs_.end()) {
    shared -= std::min(shared, (*found)->shared);
    (*found)->shared += shared;
    (*found)->used += entries + shared;
    return found->get();
  }
  entries += shared;
  // Each queue is twice as large as the previous one, so that few queues have to be polled.
  const std::uint32_t wanted = std::max(entries, std::min(device_cqs_.back()->entries, entries_max_ / 2) * 2);
  DeviceCq* device_cq = add_device_cq(wanted);
  if (device_cq == nullptr && wanted > entries) device_cq = add_device_cq(entries);
  if (device_cq == nullptr) return nullptr;
  device_cq->used = entries;
  device_cq->shared = shared;
  return device_cq;
}

void CompletionQueue::received(QueuePair& qp, const ibv_wc& from, Wc& to) const {
  if (qp.is_connecting()) qp.data_came();
  to.bytes = from.byte_len;
  if (from.opcode == IBV_WC_RECV_RDMA_WITH_IMM) to.opcode = Opcode::recv_rdma_with_imm;
  if (qp.type() == QpType::ud) {
    to.src_qp = from.src_qp;
    to.has_grh = (from.wc_flags & IBV_WC_GRH) != 0;
    to.slid = from.slid;
    to.service_level = from.sl;
  }
  to.has_imm = (from.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (to.has_imm) {
    to.imm = ntohl(from.imm_data);
  } else if (from.wc_flags != 0) {
    to.invalidated_rkey = invalidated_key(from, qp.workaround());
    if (Window* window = device_.windows().find(to.invalidated_rkey); window != nullptr) window->unbind();
  }
}

bool CompletionQueue::translate_shared(const ibv_wc& from, Wc& to) const {
  if (receives_ == nullptr || !receives_->is_own(from.wr_id)) return false;
  to = {};
  to.wr_id = receives_->complete(from.wr_id);
  to.opcode = Opcode::recv;
  to.qp_num = from.qp_num;
  to.status = status_of(from.status, true, Opcode::recv);
  if (to.status != WcStatus::success) to.vendor_err = from.vendor_err;
  QueuePair* qp = device_.find_on_shared(from.qp_num);
  // The user owns the receive's buffer again; the message is lost.
  if (qp == nullptr || qp->has_lost_completions()) {
    to.status = WcStatus::wr_flush_err;
    to.tag = kNoTag;
    return true;
  }
  to.tag = qp->tag();
  if (to.status == WcStatus::success) {
    received(*qp, from, to);
    return true;
  }
  if (to.status == WcStatus::wr_flush_err) qp->flushed();
  qp->not_carried_out();
  return true;
}

bool CompletionQueue::translate(const ibv_wc& from, Wc& to) const {
  if (ReceiveQueue::is_shared(from.wr_id)) return translate_shared(from, to);
  QueuePair* qp = device_.find(QueuePair::slot_of(from.wr_id));
  if (qp == nullptr) return false;
  const bool receive = QueuePair::is_receive(from.wr_id);
  WorkQueue& queue = qp->queue(receive);
  const auto number = static_cast<std::uint32_t>(from.wr_id);
  if (qp->has_lost_completions() || !queue.device_has(number)) return false;
  // Every receive has a completion; only signaled sends have one.
  if (receive && number != queue.head()) {
    qp->lose_completions(device_.capabilities().name + " has lost completions: their queue has overrun");
    return false;
  }
  const Entry* entry = queue.complete(number);
  to = {};
  to.wr_id = entry->wr_id;
  to.status = status_of(from.status, receive, entry->opcode);
  to.opcode = entry->opcode;
  to.qp_num = qp->qp_num();
  to.bytes = entry->bytes;
  if (to.status == WcStatus::success) queue.succeeded(number);
  const bool report = !entry->internal && (entry->signaled || to.status != WcStatus::success);
  if (to.status != WcStatus::success) {
    to.vendor_err = from.vendor_err;
    // Since Linux 6.4, soft-RoCE reports the first request that it refuses as flushed, too.
    const bool refused = to.status != WcStatus::wr_flush_err || !qp->has_failed();
    if (entry->status != WcStatus::success && refused) to.status = entry->status;
    if (to.status == WcStatus::wr_flush_err) qp->flushed();
    if (entry->internal) qp->fail(std::string("a packet could not be sent: ") + to_string(to.status));
    qp->not_carried_out();
  } else if (receive) {
    received(*qp, from, to);
  } else if (qp->workaround() != nullptr) {
    qp->workaround()->completed();
  }
  return report;
}

std::size_t CompletionQueue::poll(std::span<Wc> out) {
  if (++polls_ % kPollsPerEventCheck == 0 || device_.attempts().busy()) device_.read_async_events();
  std::size_t count = 0;
  if (stash_cq_ != nullptr && !out.empty()) {
    stash_cq_ = nullptr;
    count += translate(stash_, out[0]) ? 1u : 0u;
  }
  if (device_cqs_.size() == 1) {
    count += poll(*device_cqs_.front(), out.subspan(count));
  } else {
    for (std::size_t i = 0; i < device_cqs_.size() && count < out.size(); ++i) {
      next_ = next_ + 1 < device_cqs_.size() ? next_ + 1 : 0;
      count += poll(*device_cqs_[next_], out.subspan(count));
    }
  }
  if (failed_.empty() || out.empty()) return count;
  // This queue was empty. (Other queues may stay busy for any length of time.)
  std::uint32_t finished = 0;
  for (std::size_t i = 0; i < failed_.size() && finished < kFinishedAtOnce;
       ++i) {  // others may fail meanwhile
    const bool empty = count == 0 || (failed_[i]->shares_receives() && count < out.size());
    if (empty && failed_[i]->finish_flush()) ++finished;
  }
  return count + poll_failed(out.subspan(count));
}

std::size_t CompletionQueue::poll(DeviceCq& device_cq, std::span<Wc> out) {
  std::size_t count = 0;
  while (count < out.size()) {
    ibv_wc batch[kBatch];
    const int asked = std::min(kBatch, static_cast<int>(out.size() - count));
    const int got = ibv_poll_cq(device_cq.cq.get(), asked, batch);
    for (int i = 0; i < got; ++i) count += translate(batch[i], out[count]) ? 1u : 0u;
    if (got < 0) {
      lose(device_cq, got);
      break;
    }
    device_cq.taken.took(static_cast<std::uint64_t>(got));
    if (got == asked) continue;
    device_cq.taken.found_empty(device_cq.entries);
    // The queue was empty, so it contains no completion of a destroyed queue pair.
    device_cq.used -= device_cq.retired;
    device_cq.retired = 0;
    break;
  }
  return count;
}

void CompletionQueue::lose(DeviceCq& device_cq, int error) {
  if (device_cq.failed) return;
  device_cq.failed = true;
  device_.lose_completions(
      device_cq.cq.get(),
      " cannot read its completions any more (ibv_poll_cq returned " + std::to_string(error) + ")");
}

std::size_t CompletionQueue::poll_failed(std::span<Wc> out) {
  std::size_t count = 0;
  for (QueuePair* qp : failed_) count += qp->poll_failed(out.subspan(count));
  return count;
}

bool CompletionQueue::arm(bool solicited_only) {
  device_.watchdog().start();
  for (const auto& device_cq : device_cqs_) {
    if (stash_cq_ != nullptr || ibv_req_notify_cq(device_cq->cq.get(), solicited_only ? 1 : 0) != 0)
      return false;
    const int got = ibv_poll_cq(device_cq->cq.get(), 1, &stash_);
    if (got > 0) stash_cq_ = device_cq.get();
    if (got < 0) lose(*device_cq, got);
  }
  return stash_cq_ == nullptr &&
         std::none_of(failed_.begin(), failed_.end(), [](QueuePair* qp) { return qp->is_flushing(); });
}

void CompletionQueue::acknowledge() {
  ibv_cq* cq = nullptr;
  void* owner = nullptr;
  while (ibv_get_cq_event(channel_.get(), &cq, &owner) == 0) {
    DeviceCq& device_cq = *static_cast<DeviceCq*>(owner);
    if (++device_cq.events < kEventsPerAck) continue;
    ibv_ack_cq_events(cq, device_cq.events);
    device_cq.events = 0;
  }
  device_.read_async_events();
  if (device_.is_dead() && watching_device_) {
    // The descriptor is removed, because it would stay readable for ever.
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, device_.context()->async_fd, nullptr);
    watching_device_ = false;
  }
}

void CompletionQueue::has_failed(QueuePair& qp) { failed_.push_back(&qp); }

void CompletionQueue::forget(const QueuePair& qp) { std::erase(failed_, &qp); }

}  // namespace rdma_rpc::fabric::verbs
