// Declares helpers of the functions that replace those of libibverbs (library.cc, queues.cc). See nic.h.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "nic/device/objects.h"

#define IN_FRONT extern "C" __attribute__((visibility("default")))

namespace rdma_rpc::nic {

using LockGuard = std::lock_guard<std::recursive_mutex>;

inline Nic& nic_of(ibv_context* context) { return *static_cast<Context*>(context)->nic; }

/// Counts a command to the NIC of `context`, and returns the NIC.
inline Nic& commanded(ibv_context* context) {
  Nic& nic = nic_of(context);
  ++nic.commands;
  const auto end = std::chrono::steady_clock::now() + nic.profile.command;
  while (nic.profile.command.count() > 0 && std::chrono::steady_clock::now() < end) {
  }
  return nic;
}

inline int semaphore() { return ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE); }

inline void ring(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

inline bool was_rung(int fd) {
  std::uint64_t value = 0;
  return ::read(fd, &value, sizeof value) == sizeof value;
}

/// Removes the unread events of an object that is destroyed, as the kernel does.
template <typename Events, typename Concerns>
void take_back(Events& events, int fd, const Concerns& concerns) {
  for (auto taken = std::erase_if(events, concerns); taken > 0; --taken) was_rung(fd);
}

template <typename T>
T* refuse(int error) {
  errno = error;
  return nullptr;
}

}  // namespace rdma_rpc::nic
