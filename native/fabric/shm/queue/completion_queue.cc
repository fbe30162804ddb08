// See completion_queue.h.
#include "fabric/shm/queue/completion_queue.h"

#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "fabric/rights.h"
#include "fabric/shm/device.h"
#include "fabric/shm/queue/queue_pair.h"

namespace rdma_rpc::fabric::shm {
namespace {

/// Number of polls between updates of `cpu`: a thread rarely moves, and a peer needs to know its CPU only
/// roughly.
constexpr std::uint32_t kPollsPerCpuCheck = 32;

}  // namespace

CompletionQueue::CompletionQueue(Device& device, std::uint32_t poller, UniqueFd pipe_read,
                                 UniqueFd pipe_write)
    : device_(device),
      poller_index_(poller),
      pipe_serial_(device.next_pipe_serial()),
      poller_(device.shared().pollers[poller]),
      pipe_read_(std::move(pipe_read)),
      pipe_write_(std::move(pipe_write)) {
  note_cpu();
}

CompletionQueue::~CompletionQueue() {
  if (reactor_) device_.counts().open_fds -= 2;
  if (acceptor_) --device_.counts().open_fds;
  poller_.sleeping.store(0, std::memory_order_relaxed);
  device_.forget(*this);
}

bool CompletionQueue::watch_lines() {
  reactor_ = std::make_unique<Reactor>();
  device_.counts().open_fds += 2;
  return reactor_->open() && reactor_->add(own_pipe_, pipe_read_.get(), EPOLLIN);
}

std::string CompletionQueue::open_acceptor(Token* token) {
  std::string why;
  if (acceptor_ == nullptr) {
    acceptor_ = Acceptor::open(
        *reactor_,
        [this](UniqueFd fd, const ConnectMessage& message) {
          if (QueuePair* qp = device_.find(message.to)) return qp->take(std::move(fd), message.from);
          const ConnectMessage answer = make_connect_message(ConnectKind::unknown, message.from, message.to);
          send_now(fd.get(), &answer, sizeof answer);
          close_elsewhere(std::move(fd));
        },
        &why);
    if (acceptor_ == nullptr) return "shm: " + why;
    ++device_.counts().open_fds;
  }
  acceptor_->mark(token);
  return {};
}

void CompletionQueue::note_cpu() {
  const auto cpu = static_cast<std::uint32_t>(::sched_getcpu());
  if (cpu == cpu_) return;
  cpu_ = cpu;
  poller_.cpu.store(cpu, std::memory_order_relaxed);
}

std::size_t CompletionQueue::poll(std::span<Wc> out) {
  apart_bytes_ = 0;
  if (polls_++ % kPollsPerCpuCheck == 0) note_cpu();
  if (handshakes_ != 0) reactor_->progress();
  device_.collect_announced(std::memory_order_relaxed);
  if (polls_ % device_.options().polls_per_hand == 0) move_hand();
  const std::size_t watched = watched_.size();
  if (watched == 1 && first_ == nullptr) return poll(*watched_[0], out);
  // Each queue pair gets an equal share of the batch before any other queue pair gets more. Handling a
  // completion may take milliseconds. A queue pair with one completion should have to wait for only a few
  // completions of each other queue pair, and not for a whole batch of each.
  const std::size_t share =
      std::max<std::size_t>(1, out.size() / std::max<std::size_t>(1, watched + listed_));
  std::size_t count = 0;
  bool again = true;
  while (again && count < out.size()) {
    again = false;
    for (std::size_t i = 0; i <= watched && count < out.size(); ++i) {
      next_ = next_ < watched ? next_ + 1 : 0;
      if (next_ == watched) {
        count += poll_listed(out.subspan(count), share, &again);
        continue;
      }
      const std::size_t room = std::min(share, out.size() - count);
      const std::size_t got = poll(*watched_[next_], out.subspan(count, room));
      again = again || got == room;
      count += got;
    }
  }
  return count;
}

std::size_t CompletionQueue::poll(QueuePair& qp, std::span<Wc> out) {
  ++looked_at_;
  const std::size_t got = qp.poll(out);
  if (got != 0) qp.turns.active = true;
  return got;
}

/// Polls each queue pair that is on the list when the round begins, once, for at most `share` completions. A
/// queue pair stays on the list in two cases: when it may have more completions (`more` is then set), and
/// when no side announces the event for which it waits. If the batch fills up, the next poll() continues the
/// round.
std::size_t CompletionQueue::poll_listed(std::span<Wc> out, std::size_t share, bool* more) {
  std::size_t count = 0;
  if (turn_left_ == 0) turn_left_ = listed_;
  for (; turn_left_ != 0 && first_ != nullptr && count < out.size(); --turn_left_) {
    QueuePair& qp = *first_;
    unlist(qp);
    const std::size_t room = std::min(share, out.size() - count);
    const std::size_t got = poll(qp, out.subspan(count, room));
    count += got;
    if (got != 0 && !qp.turns.watched) candidate_ = &qp;
    if (got == room) *more = true;
    if (got == room || qp.wants_turns()) list(qp);
  }
  if (first_ == nullptr) turn_left_ = 0;
  if (turn_left_ != 0) next_ = watched_.size() - 1;
  return count;
}

// --- watched and listed queue pairs

void CompletionQueue::add(QueuePair& qp) {
  if (device_.announcements() == nullptr || watched_.size() < device_.options().watched_max) {
    watch(qp);
  } else {
    qp.rely_on_announcements(true);
  }
}

void CompletionQueue::remove(QueuePair& qp) {
  std::erase(watched_, &qp);
  if (candidate_ == &qp) candidate_ = nullptr;
  if (qp.turns.listed) unlist(qp);
}

void CompletionQueue::note(QueuePair& qp) {
  list(qp);
  if (armed_) wake();
}

void CompletionQueue::note_failed(QueuePair& qp) {
  list(qp);
  if (armed_ || armed_solicited_) wake();
}

void CompletionQueue::list(QueuePair& qp) {
  if (qp.turns.watched || std::exchange(qp.turns.listed, true)) return;
  qp.turns.next = nullptr;
  qp.turns.before = last_;
  (last_ == nullptr ? first_ : last_->turns.next) = &qp;
  last_ = &qp;
  ++listed_;
}

void CompletionQueue::unlist(QueuePair& qp) {
  const Turns& at = qp.turns;
  (at.before == nullptr ? first_ : at.before->turns.next) = at.next;
  (at.next == nullptr ? last_ : at.next->turns.before) = at.before;
  qp.turns.listed = false;
  --listed_;
}

void CompletionQueue::watch(QueuePair& qp) {
  qp.turns.watched = qp.turns.active = true;
  qp.rely_on_announcements(false);
  watched_.push_back(&qp);
}

void CompletionQueue::stop_watching(std::size_t index) {
  QueuePair& qp = *watched_[index];
  watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(index));
  qp.turns.watched = false;
  qp.rely_on_announcements(true);
  if (qp.wants_turns() || !qp.idle()) list(qp);
}

/// Starts to watch an active queue pair, and stops watching a queue pair that was idle for a whole round.
void CompletionQueue::move_hand() {
  if (device_.announcements() == nullptr) return;
  const ShmOptions& options = device_.options();
  if (watched_.size() > options.watched_min) {
    hand_ = hand_ + 1 < watched_.size() ? hand_ + 1 : 0;
    if (!std::exchange(watched_[hand_]->turns.active, false)) stop_watching(hand_);
  }
  if (candidate_ != nullptr && watched_.size() < options.watched_max)
    watch(*std::exchange(candidate_, nullptr));
}

bool CompletionQueue::arm(bool solicited_only) {
  note_cpu();
  sleeps_ += 2;
  if (sleeps_ == 0) sleeps_ += 2;
  // A peer first publishes a message and then reads this word. This side first writes the word and then looks
  // at the rings. In every order of these steps, at least one side sees the word that the other has written.
  poller_.sleeping.store(sleeps_ | (solicited_only ? kSolicitedOnly : 0u), std::memory_order_seq_cst);
  device_.collect_announced(std::memory_order_seq_cst);
  bool idle = std::all_of(watched_.begin(), watched_.end(), [](const QueuePair* qp) { return qp->idle(); });
  for (const QueuePair* qp = first_; qp != nullptr && idle; qp = qp->turns.next) idle = qp->idle();
  if (!idle) {
    poller_.sleeping.store(0, std::memory_order_relaxed);
    return false;
  }
  armed_ = !solicited_only;
  armed_solicited_ = solicited_only;
  return true;
}

void CompletionQueue::wake() {
  armed_ = armed_solicited_ = false;
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(pipe_write_.get(), &byte, 1);
}

void CompletionQueue::acknowledge() {
  armed_ = armed_solicited_ = false;
  poller_.sleeping.store(0, std::memory_order_relaxed);
  if (reactor_) {
    // The usual case is a bell on the only control connection, which one system call reads. Other events are
    // not lost: they are reported again.
    if (watched_.size() == 1 && watched_[0]->hears_something()) return;
    reactor_->progress();
    if (!std::exchange(own_pipe_.rung, false)) return;
  }
  char rung[64];
  stall_point();
  while (::read(pipe_read_.get(), rung, sizeof rung) == static_cast<ssize_t>(sizeof rung)) {
  }
}

bool CompletionQueue::peer_shares_cpu() const {
  const auto cpu = static_cast<std::uint32_t>(::sched_getcpu());
  return std::any_of(watched_.begin(), watched_.end(),
                     [cpu](const QueuePair* qp) { return qp->peer_wants_cpu(cpu); });
}

}  // namespace rdma_rpc::fabric::shm
