// Queues the calls of a context that wait for arena memory, in order. The calls are those of a client that
// need a reply buffer, and those of a server that need memory for the READ of a request. Sessions add and
// remove the calls, and the context retries them in each turn, on its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "session/bounded_queue.h"
#include "session/limits.h"

namespace rdma_rpc::session {

class SessionTable;

class MemoryWaiters {
 public:
  std::size_t size() const { return queue_.size(); }

  /// Adds the call with the call word `call`. Returns false when the queue is full.
  bool push(std::uint32_t session, std::uint32_t call) { return queue_.push({session, call, waited_ns_}); }
  /// Removes this call of the session, or all calls of the session when no call is given.
  void forget(std::uint32_t session, std::optional<std::uint32_t> call = std::nullopt) {
    queue_.erase_if(
        [&](const Waiter& waiter) { return waiter.session == session && (!call || waiter.call == *call); });
  }
  /// Returns whether a call of the session waits; when `call` is given, whether that call waits.
  bool has(std::uint32_t session, std::optional<std::uint32_t> call = std::nullopt) {
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      if (queue_.at(i).session == session && (!call || queue_.at(i).call == *call)) return true;
    }
    return false;
  }

  /// Retries calls in order, and refuses calls that have waited too long. Returns true when a call has waited
  /// so long that the application should be warned.
  bool retry(SessionTable& sessions, std::uint64_t now_ns);

 private:
  struct Waiter {
    std::uint32_t session, call;
    std::uint64_t since_ns = 0;  ///< value of `waited_ns_` when the call was added
  };
  bool passed_over(std::uint32_t session) const;

  BoundedQueue<Waiter> queue_{kMemoryWaitersMax};
  std::uint64_t waited_ns_ = 0;             ///< time in which calls waited and the thread could serve them
  std::uint64_t checked_ns_ = 0;            ///< time of the last retry()
  std::vector<std::uint32_t> passed_over_;  ///< sessions that were passed over in this retry()
};

}  // namespace rdma_rpc::session
