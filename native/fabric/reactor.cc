// See reactor.h.
#include "fabric/reactor.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

namespace rdma_rpc::fabric {
namespace {

constexpr int kBatch = 32;

epoll_event event_for(EventHandler* handler, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = handler;
  return event;
}

}  // namespace

bool Reactor::open() {
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!epoll_ || !timer_) return false;
  epoll_event event = event_for(nullptr, EPOLLIN);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &event) == 0;
}

bool Reactor::add(EventHandler& handler, int fd, std::uint32_t events) {
  epoll_event event = event_for(&handler, events);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

bool Reactor::change(EventHandler& handler, int fd, std::uint32_t events) {
  epoll_event event = event_for(&handler, events);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

void Reactor::remove(EventHandler& handler, int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  std::replace(notified_.begin(), notified_.end(), &handler, static_cast<EventHandler*>(nullptr));
  cancel_timeout(handler);
}

void Reactor::set_timeout(EventHandler& handler, std::uint32_t ms) {
  cancel_timeout(handler);
  timeouts_.push_back({&handler, Clock::now() + std::chrono::milliseconds(ms)});
  set_timer();
}

void Reactor::cancel_timeout(const EventHandler& handler) {
  std::erase_if(timeouts_, [&](const Timeout& timeout) { return timeout.handler == &handler; });
}

std::uint32_t Reactor::time_left_ms(const EventHandler& handler) const {
  for (const Timeout& timeout : timeouts_) {
    if (timeout.handler != &handler) continue;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout.at - Clock::now()).count();
    return static_cast<std::uint32_t>(std::max<std::int64_t>(ms, 1));
  }
  return 1;
}

void Reactor::set_timer() {
  itimerspec when{};
  if (!timeouts_.empty()) {
    const auto first = std::min_element(timeouts_.begin(), timeouts_.end(),
                                        [](const Timeout& a, const Timeout& b) { return a.at < b.at; });
    // At least 1 ns, because zero would disarm the timer.
    const auto ns = std::max<std::int64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(first->at - Clock::now()).count(), 1);
    when.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

bool Reactor::tell_expired() {
  bool any = false;
  const auto now = Clock::now();
  // Each call may change the list, so the search starts again after each call.
  for (bool found = true; found;) {
    found = false;
    for (const Timeout& timeout : timeouts_) {
      if (timeout.at > now) continue;
      EventHandler* handler = timeout.handler;
      cancel_timeout(*handler);
      handler->expired();
      found = any = true;
      break;
    }
  }
  set_timer();
  return any;
}

bool Reactor::progress() {
  epoll_event events[kBatch];
  const int count = ::epoll_wait(epoll_.get(), events, kBatch, 0);
  notified_.clear();
  bool timer = false, any = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) {
      timer = true;
    } else {
      notified_.push_back(static_cast<EventHandler*>(events[i].data.ptr));
    }
  }
  for (std::size_t i = 0; i < notified_.size(); ++i) {
    if (notified_[i] == nullptr) continue;
    notified_[i]->ready();
    any = true;
  }
  notified_.clear();
  if (!timer) return any;
  std::uint64_t expirations = 0;
  // The read can fail only when the timer was set again after it fired. In that case no expiration is left to
  // read.
  [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &expirations, sizeof expirations);
  return tell_expired() || any;
}

}  // namespace rdma_rpc::fabric
