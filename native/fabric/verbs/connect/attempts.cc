// See attempts.h.
#include "fabric/verbs/connect/attempts.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

#include "fabric/verbs/connect/connection.h"

namespace rdma_rpc::fabric::verbs {

Attempts::~Attempts() {
  if (timer_ >= 0) ::close(timer_);
  if (epoll_ >= 0) ::close(epoll_);
}

bool Attempts::open() {
  wake_up_ = std::make_shared<WakeUp>();
  timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  const auto watch = [this](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    return fd >= 0 && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
  };
  return watch(wake_up_->fd()) && watch(timer_);
}

void Attempts::leave(Connection& connection) {
  forget_limit(connection);
  std::erase(connections_, &connection);
}

void Attempts::limit(Connection& connection, Clock::time_point time) {
  forget_limit(connection);
  limits_.push_back({&connection, time});
  set_timer();
}

void Attempts::forget_limit(Connection& connection) {
  std::erase_if(limits_, [&](const Limit& each) { return each.connection == &connection; });
}

void Attempts::set_timer() const {
  itimerspec when{};
  if (!limits_.empty()) {
    const auto first = std::min_element(limits_.begin(), limits_.end(),
                                        [](const Limit& a, const Limit& b) { return a.time < b.time; });
    const auto since = first->time.time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    when.it_value = {seconds.count(), std::chrono::nanoseconds(since - seconds).count()};
  }
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void Attempts::progress() {
  epoll_event ready[2];
  const int count = ::epoll_wait(epoll_, ready, 2, 0);
  for (int i = 0; i < count; ++i) {
    if (ready[i].data.fd == timer_) {
      take_expired();
    } else {
      wake_up_->quiet();
      for (Connection* connection : connections_) connection->call_returned();
    }
  }
}

void Attempts::take_expired() {
  const auto now = Clock::now();
  std::vector<Connection*> expired;
  for (const Limit& each : limits_) {
    if (each.time <= now) expired.push_back(each.connection);
  }
  for (Connection* connection : expired) connection->expire();
  set_timer();  // also makes it unreadable
}

}  // namespace rdma_rpc::fabric::verbs
