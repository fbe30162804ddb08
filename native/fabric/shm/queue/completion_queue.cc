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

/// Of one queue pair before the next has its turn.
constexpr std::size_t kBudget = 64;
/// A thread rarely moves, and a peer needs to know only roughly.
constexpr std::uint32_t kPollsPerCpuCheck = 32;

}  // namespace

CompletionQueue::CompletionQueue(Device& device, std::uint32_t poller, UniqueFd pipe_read,
                                 UniqueFd pipe_write)
    : device_(device),
      poller_index_(poller),
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
        [this](UniqueFd fd, const Greeting& greeting) {
          if (QueuePair* qp = device_.find(greeting.to)) return qp->take(std::move(fd), greeting.from);
          const Greeting answer = make_greeting(Say::unknown, greeting.from, greeting.to);
          say(fd.get(), &answer, sizeof answer);
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
  if (polls_++ % kPollsPerCpuCheck == 0) note_cpu();
  if (handshakes_ != 0) reactor_->progress();
  const std::size_t pairs = queue_pairs_.size();
  if (pairs == 1) return queue_pairs_[0]->poll(out);
  std::size_t count = 0;
  bool again = true;
  while (again && count < out.size()) {
    again = false;
    for (std::size_t i = 0; i < pairs && count < out.size(); ++i) {
      next_ = next_ + 1 < pairs ? next_ + 1 : 0;
      const std::size_t budget = std::min(kBudget, out.size() - count);
      const std::size_t got = queue_pairs_[next_]->poll(out.subspan(count, budget));
      again = again || got == budget;
      count += got;
    }
  }
  return count;
}

bool CompletionQueue::arm() {
  note_cpu();
  if (++sleeps_ == 0) ++sleeps_;
  // A peer publishes and then looks at this word; here it is written first and the rings are looked at after
  // it. Whatever the order in time, one of the two sees the other.
  poller_.sleeping.store(sleeps_, std::memory_order_seq_cst);
  for (const QueuePair* qp : queue_pairs_) {
    if (!qp->idle()) {
      poller_.sleeping.store(0, std::memory_order_relaxed);
      return false;
    }
  }
  armed_ = true;
  return true;
}

void CompletionQueue::wake() {
  armed_ = false;
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(pipe_write_.get(), &byte, 1);
}

void CompletionQueue::acknowledge() {
  armed_ = false;
  poller_.sleeping.store(0, std::memory_order_relaxed);
  if (reactor_) {
    // Nearly always it is a bell on the one control connection, which is heard with one system call. What
    // else there is is told again.
    if (queue_pairs_.size() == 1 && queue_pairs_[0]->hears_something()) return;
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
  return std::any_of(queue_pairs_.begin(), queue_pairs_.end(),
                     [cpu](const QueuePair* qp) { return qp->peer_wants_cpu(cpu); });
}

}  // namespace rdma_rpc::fabric::shm
