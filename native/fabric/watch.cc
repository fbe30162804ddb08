// See watch.h.
#include "fabric/watch.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

namespace rdma_rpc::fabric {
namespace {

constexpr int kBatch = 32;

epoll_event event_for(Waiter* waiter, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = waiter;
  return event;
}

}  // namespace

bool Watch::open() {
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!epoll_ || !timer_) return false;
  epoll_event event = event_for(nullptr, EPOLLIN);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &event) == 0;
}

bool Watch::add(Waiter& waiter, int fd, std::uint32_t events) {
  epoll_event event = event_for(&waiter, events);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

bool Watch::change(Waiter& waiter, int fd, std::uint32_t events) {
  epoll_event event = event_for(&waiter, events);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

void Watch::remove(Waiter& waiter, int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  std::replace(told_.begin(), told_.end(), &waiter, static_cast<Waiter*>(nullptr));
  forget_limit(waiter);
}

void Watch::limit(Waiter& waiter, std::uint32_t ms) {
  forget_limit(waiter);
  limits_.push_back({&waiter, Clock::now() + std::chrono::milliseconds(ms)});
  set_timer();
}

void Watch::forget_limit(const Waiter& waiter) {
  std::erase_if(limits_, [&](const Limit& limit) { return limit.waiter == &waiter; });
}

std::uint32_t Watch::left(const Waiter& waiter) const {
  for (const Limit& limit : limits_) {
    if (limit.waiter != &waiter) continue;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit.at - Clock::now()).count();
    return static_cast<std::uint32_t>(std::max<std::int64_t>(ms, 1));
  }
  return 1;
}

void Watch::set_timer() {
  itimerspec when{};
  if (!limits_.empty()) {
    const auto first = std::min_element(limits_.begin(), limits_.end(),
                                        [](const Limit& a, const Limit& b) { return a.at < b.at; });
    // Zero would mean never.
    const auto ns = std::max<std::int64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(first->at - Clock::now()).count(), 1);
    when.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

bool Watch::tell_expired() {
  bool any = false;
  const auto now = Clock::now();
  // Each call may change the list.
  for (bool found = true; found;) {
    found = false;
    for (const Limit& limit : limits_) {
      if (limit.at > now) continue;
      Waiter* waiter = limit.waiter;
      forget_limit(*waiter);
      waiter->expired();
      found = any = true;
      break;
    }
  }
  set_timer();
  return any;
}

bool Watch::progress() {
  epoll_event events[kBatch];
  const int count = ::epoll_wait(epoll_.get(), events, kBatch, 0);
  told_.clear();
  bool timer = false, any = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) {
      timer = true;
    } else {
      told_.push_back(static_cast<Waiter*>(events[i].data.ptr));
    }
  }
  for (std::size_t i = 0; i < told_.size(); ++i) {
    if (told_[i] == nullptr) continue;
    told_[i]->ready();
    any = true;
  }
  told_.clear();
  if (!timer) return any;
  std::uint64_t rung = 0;
  // Cannot fail but for a timer that was set anew meanwhile: then there is nothing to take.
  [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &rung, sizeof rung);
  return tell_expired() || any;
}

}  // namespace rdma_rpc::fabric
