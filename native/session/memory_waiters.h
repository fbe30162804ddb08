// The calls of a context that wait for arena memory, in order: calls of a client for a reply buffer, and
// calls of a server for a request to READ. Sessions add and remove them; the context retries them in each
// turn, on its thread.
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

  /// Adds the call with that call word. Returns false when too many calls wait.
  bool push(std::uint32_t session, std::uint32_t call) { return queue_.push({session, call, waited_ns_}); }
  /// Removes this call of the session, or, without a call, all of its calls.
  void forget(std::uint32_t session, std::optional<std::uint32_t> call = std::nullopt) {
    queue_.erase_if(
        [&](const Waiter& waiter) { return waiter.session == session && (!call || waiter.call == *call); });
  }
  /// Returns whether a call of the session waits; with `call`, whether that one does.
  bool has(std::uint32_t session, std::optional<std::uint32_t> call = std::nullopt) {
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      if (queue_.at(i).session == session && (!call || queue_.at(i).call == *call)) return true;
    }
    return false;
  }

  /// Retries calls in order, since memory may be free, and refuses those that have waited too long. Returns
  /// whether a call has waited so long that the application should be warned.
  bool retry(SessionTable& sessions, std::uint64_t now_ns);

 private:
  struct Waiter {
    std::uint32_t session, call;
    std::uint64_t since_ns = 0;  ///< value of `waited_ns_`
  };
  bool passed_over(std::uint32_t session) const;

  BoundedQueue<Waiter> queue_{kMemoryWaitersMax};
  std::uint64_t waited_ns_ = 0;             ///< time in which calls waited and the thread could serve them
  std::uint64_t checked_ns_ = 0;            ///< when they were last tried
  std::vector<std::uint32_t> passed_over_;  ///< sessions, in one round
};

}  // namespace rdma_rpc::session
