// See completion_queue.h.
#include "fabric/tcp/queue/completion_queue.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "fabric/tcp/device.h"
#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric::tcp {
namespace {

constexpr int kBatch = 64;
/// With one connection, the kernel is asked for other events only once in this number of polls.
constexpr std::uint32_t kPollsPerSocketPoll = 16;
/// Number of polls without a sleep before fd() stops watching the sockets.
constexpr std::uint32_t kPollsUnwatched = 16;
/// Number of rounds in which arm() gives queue pairs their turn before it reports that more work is left.
constexpr int kTurnsOfArm = 4;

bool watch(int epoll, int fd, std::uint32_t events, void* data) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = data;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

CompletionQueue::CompletionQueue(Device& device) : device_(device) { device_.counts().open_fds += 3; }

CompletionQueue::~CompletionQueue() { device_.counts().open_fds -= 3; }

bool CompletionQueue::open() {
  outer_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  inner_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  bell_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  return outer_ && inner_ && bell_ && watch(inner_.get(), device_.reactor().fd(), EPOLLIN, nullptr) &&
         watch(outer_.get(), inner_.get(), 0, nullptr) && watch(outer_.get(), bell_.get(), EPOLLIN, nullptr);
}

bool CompletionQueue::add(QueuePair& qp, int fd) {
  if (!watch(inner_.get(), fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &qp)) return false;
  connected_.push_back(&qp);
  waiting_.reserve(connected_.size());
  turns_.reserve(connected_.size());
  return true;
}

void CompletionQueue::remove(QueuePair& qp, int fd) {
  ::epoll_ctl(inner_.get(), EPOLL_CTL_DEL, fd, nullptr);
  std::erase(connected_, &qp);
  std::erase(waiting_, &qp);
  std::replace(turns_.begin(), turns_.end(), &qp, static_cast<QueuePair*>(nullptr));
}

void CompletionQueue::enqueue(QueuePair& qp) { waiting_.push_back(&qp); }

/// Handles the events that the kernel reports.
void CompletionQueue::poll_sockets() {
  epoll_event events[kBatch];
  const int count = ::epoll_wait(inner_.get(), events, kBatch, 0);
  for (int i = 0; i < count; ++i) {
    auto* qp = static_cast<QueuePair*>(events[i].data.ptr);
    if (qp == nullptr) {
      others_ = true;
    } else {
      const std::uint32_t what = events[i].events;
      const bool ends = (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
      qp->note_ready(ends || (what & EPOLLIN) != 0, (what & EPOLLOUT) != 0, ends);
    }
  }
}

void CompletionQueue::give_turns() {
  coalescing_.end();
  if (std::exchange(others_, false)) device_.reactor().progress();
  turns_.swap(waiting_);
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    if (turns_[i] != nullptr) turns_[i]->turn();
  }
  turns_.clear();
}

/// With a single connection, its socket is read directly, which saves a system call. The kernel is asked for
/// other events only from time to time.
bool CompletionQueue::asks_socket() const { return connected_.size() == 1 && !connected_[0]->is_blocked(); }

void CompletionQueue::progress() {
  if (watched_ && !armed_ && polls_ - awake_since_ >= kPollsUnwatched) watch_sockets(false);
  if (polls_ % kPollsPerSocketPoll == 0) {
    device_.path_timer().start();
    poll_sockets();
  } else if (asks_socket()) {
    // The second poll after a sleep is skipped, because the first poll has emptied the socket. If the thread
    // sleeps again, fd() or arm() reports new data.
    if (polls_ - awake_since_ != 2) connected_[0]->note_ready(true, false, false);
  } else if (waiting_.empty()) {
    // Queue pairs that are already known to have work go first.
    poll_sockets();
  }
  give_turns();
}

/// A refusal by the system does no harm: fd() becomes readable once too often, or a sleeping thread polls.
void CompletionQueue::watch_sockets(bool on) {
  epoll_event event{};
  if (on) event.events = EPOLLIN;
  if (::epoll_ctl(outer_.get(), EPOLL_CTL_MOD, inner_.get(), &event) == 0) watched_ = on;
}

std::size_t CompletionQueue::poll(std::span<Wc> out) {
  changed_ = false;
  ++polls_;
  if (ring_.size() == 0) {
    progress();
  } else if (coalescing_.is_over()) {
    give_turns();
  }
  const std::size_t count = ring_.take(out);
  coalescing_.gave_out(ring_.size());
  return count;
}

bool CompletionQueue::arm() {
  ++polls_;
  device_.path_timer().start();
  for (int i = 0; i < kTurnsOfArm && ring_.size() == 0; ++i) {
    // When fd() watches the sockets, it becomes readable as soon as the kernel has events.
    if (!watched_) poll_sockets();
    give_turns();
    if (waiting_.empty()) break;
  }
  if (ring_.size() != 0 || changed_ || !waiting_.empty()) return false;
  if (!watched_) watch_sockets(true);
  armed_ = watched_;
  return armed_;
}

void CompletionQueue::acknowledge() {
  if (armed_) poll_sockets();
  armed_ = false;
  awake_since_ = polls_;
  if (!rung_) return;
  std::uint64_t value = 0;
  // The read cannot fail, because the counter is not zero and only this object reads it.
  [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &value, sizeof value);
  rung_ = false;
}

void CompletionQueue::push(const Cqe& cqe) {
  ring_.push(cqe);
  announce();
}

void CompletionQueue::announce() {
  changed_ = true;
  if (!armed_ || rung_) return;
  const std::uint64_t one = 1;
  rung_ = ::write(bell_.get(), &one, sizeof one) == sizeof one;
}

}  // namespace rdma_rpc::fabric::tcp
