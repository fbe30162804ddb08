// See wait_thread.h.
#include "binding/event_loop/wait_thread.h"

#include <napi.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rdma_rpc::binding {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
enum Watched : std::uint32_t { kCompletions, kTimer, kEnd };

/// Arms the descriptor for one report.
bool watch(int epoll, int operation, int fd, Watched which) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u32 = which;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

}  // namespace

std::unique_ptr<EventLoop> WaitThread::open(napi_env env, int fd, Listener& listener, std::string* error) {
  std::unique_ptr<WaitThread> loop(new WaitThread(env, listener));
  *error = loop->define_callbacks();
  if (error->empty()) *error = loop->start(fd);
  if (error->empty()) return loop;
  if (loop->function_ != nullptr) {
    // The thread-safe function releases the object later, so it is deleted then.
    WaitThread* mine = loop.release();
    mine->close([mine] { delete mine; });
  }
  return nullptr;
}

WaitThread::WaitThread(napi_env env, Listener& listener)
    : env_(env), listener_(listener), self_(std::make_shared<WaitThread*>(this)) {}

WaitThread::~WaitThread() {
  *self_ = nullptr;
  for (const napi_ref reference : {turn_, set_immediate_}) {
    if (reference != nullptr) napi_delete_reference(env_, reference);
  }
}

std::string WaitThread::define_callbacks() {
  const Napi::HandleScope scope(env_);
  const Napi::Value set_immediate = Napi::Env(env_).Global().Get("setImmediate");
  if (!set_immediate.IsFunction()) return "this runtime has no setImmediate()";
  const auto turn = Napi::Function::New(env_, [self = self_](const Napi::CallbackInfo&) {
    if (*self != nullptr) (*self)->came_round();
  });
  napi_create_reference(env_, set_immediate, 1, &set_immediate_);
  napi_create_reference(env_, turn, 1, &turn_);
  const napi_status status = napi_create_threadsafe_function(
      env_, nullptr, nullptr, Napi::String::New(env_, "rdma-rpc"), 0, 1, this,
      [](napi_env, void*, void* loop) { static_cast<WaitThread*>(loop)->released(); }, this,
      [](napi_env env, napi_value, void* loop, void*) {
        if (env != nullptr) static_cast<WaitThread*>(loop)->arrived();
      },
      &function_);
  if (status != napi_ok) return "this runtime has no thread-safe functions";
  // Only sockets and calls of the application keep a process alive; this function never does.
  napi_unref_threadsafe_function(env_, function_);
  return {};
}

std::string WaitThread::start(int fd) {
  fd_ = fd;
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  end_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (epoll_ < 0 || timer_ < 0 || end_ < 0 || !watch(epoll_, EPOLL_CTL_ADD, fd_, kCompletions) ||
      !watch(epoll_, EPOLL_CTL_ADD, timer_, kTimer) || !watch(epoll_, EPOLL_CTL_ADD, end_, kEnd)) {
    return std::string("cannot open the descriptors of the waiting thread: ") + std::strerror(errno);
  }
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  const int error = ::pthread_create(
      &thread_, &attributes,
      [](void* loop) -> void* {
        static_cast<WaitThread*>(loop)->wait();
        return nullptr;
      },
      this);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) return std::string("cannot start the waiting thread: ") + std::strerror(error);
  running_ = true;
  return {};
}

// --- on the waiting thread

void WaitThread::wait() {
  sigset_t all;  // signals of the process are handled by its other threads
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::array<epoll_event, 3> events;
  for (;;) {
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const std::uint32_t which = events[static_cast<std::size_t>(i)].data.u32;
      if (which == kEnd) return;
      (which == kTimer ? ticked_ : readable_) = true;
    }
    if (count > 0 && !post()) return;
  }
}

/// Schedules arrived() on the JS thread. Both threads may call post(). Returns false when the environment is
/// ending; post() must not be called after that.
bool WaitThread::post() {
  if (posted_.exchange(true)) return true;
  return napi_call_threadsafe_function(function_, nullptr, napi_tsfn_nonblocking) == napi_ok;
}

// --- on the JS thread

void WaitThread::arrived() {
  posted_ = false;  // This comes first, so that a descriptor that becomes ready from here on is posted again.
  const bool readable = readable_.exchange(false);
  const bool ticked = ticked_.exchange(false);
  if (stopped_) return;
  in_callback_ = true;
  if (readable) listener_.readable();
  if (ticked && !stopped_) listener_.tick();
  if (!readable && !ticked && spinning_) listener_.turn();
  in_callback_ = false;
  go_on();
}

void WaitThread::came_round() {
  immediate_ = false;
  if (stopped_ || !spinning_) return;
  in_callback_ = true;
  listener_.turn();
  in_callback_ = false;
  go_on();
}

/// Continues by setImmediate() instead of posting. A call that is posted while a thread-safe function runs is
/// executed at once. This may repeat up to a thousand times before the loop serves its sockets again.
void WaitThread::go_on() {
  if (stopped_ || !spinning_ || immediate_) return;
  const Napi::HandleScope scope(env_);
  napi_value set_immediate = nullptr, turn = nullptr, global = nullptr, made = nullptr;
  napi_get_reference_value(env_, set_immediate_, &set_immediate);
  napi_get_reference_value(env_, turn_, &turn);
  napi_get_global(env_, &global);
  immediate_ = napi_call_function(env_, global, set_immediate, 1, &turn, &made) == napi_ok;
}

void WaitThread::spin() {
  if (stopped_) return;
  spinning_ = true;
  // spin() may be called from a finalizer, where JS must not be entered, so setImmediate() cannot be used
  // here.
  if (!in_callback_ && !immediate_) post();
}

void WaitThread::rest() {
  if (stopped_) return;
  spinning_ = false;
  watch(epoll_, EPOLL_CTL_MOD, fd_, kCompletions);
}

void WaitThread::tick_after(std::uint64_t ms) {
  if (stopped_) return;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(ms / 1000);
  when.it_value.tv_nsec = static_cast<long>(ms % 1000) * 1'000'000;
  ::timerfd_settime(timer_, 0, &when, nullptr);
  watch(epoll_, EPOLL_CTL_MOD, timer_, kTimer);
}

void WaitThread::stop() {
  stopped_ = true;
  if (running_) {
    const std::uint64_t one = 1;
    while (::write(end_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    ::pthread_join(thread_, nullptr);
    running_ = false;
  }
  for (int* fd : {&epoll_, &timer_, &end_}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
}

void WaitThread::close(std::function<void()> then) {
  then_ = std::move(then);
  stop();
  if (released_) return released();
  napi_release_threadsafe_function(function_, napi_tsfn_abort);
}

/// From here on nothing calls this object. The end of the environment may call this function earlier than
/// close() does.
void WaitThread::released() {
  stop();
  released_ = true;
  if (!then_) return;
  const std::function<void()> then = std::move(then_);  // this object may have been destroyed when it returns
  then();
}

}  // namespace rdma_rpc::binding
