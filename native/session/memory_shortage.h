// Handles a shortage of arena memory. This class notifies JS when memory becomes free again and when calls
// have waited for long. It reclaims memory from a peer that keeps it in use for some seconds. Context owns
// this object and uses it on the context's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "session/session_table.h"
#include "session/shared.h"

namespace rdma_rpc::session {

class MemoryShortage {
 public:
  MemoryShortage(Shared& shared, SessionTable& sessions) : shared_(shared), sessions_(sessions) {}

  /// This function is called while calls wait in JS. Notifies JS when memory has been released since the last
  /// notification.
  void notify_free();
  /// Notifies JS, once, that calls have waited for long.
  void notify_short();
  /// Reclaims the memory that one stopped or slow peer keeps in use, while calls of other sessions wait.
  /// Returns the session of the stopped or slow peer, or null.
  Session* reclaim();

 private:
  std::optional<std::uint64_t> refused_since();

  Shared& shared_;
  SessionTable& sessions_;
  std::uint64_t changes_ = 0;  ///< releases and registrations at the last notification of free memory
  std::uint64_t notified_refusals_ = 0;  ///< number of refusals of the arena at that time
  std::uint64_t checked_refusals_ = 0;   ///< number of refusals at the last reclaim()
  std::uint64_t short_since_ns_ = 0;     ///< on the awake clock; 0 while memory is not short
  bool notified_short_ = false;
};

}  // namespace rdma_rpc::session
