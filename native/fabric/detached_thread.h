// Starts a thread that is never joined, for work that another party can delay without limit. The fabrics and
// the socket relay start such threads, on any thread.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace rdma_rpc::fabric {

/// Runs `body` on a new thread. Returns 0, or an errno when no thread could be started; `body` is then
/// destroyed.
template <class Body>
int start_detached(std::size_t stack_bytes, Body body) {
  auto given = std::make_unique<Body>(std::move(body));
  // The process's signals must be handled by its other threads. The signals are blocked here, because a new
  // thread inherits the signal mask of its creator.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  const int error = ::pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        const std::unique_ptr<Body> mine(static_cast<Body*>(argument));
        (*mine)();
        return nullptr;
      },
      given.get());
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) static_cast<void>(given.release());
  return error;
}

}  // namespace rdma_rpc::fabric
