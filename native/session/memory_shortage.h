// What a context does when its arena is short of memory: JS hears when memory comes free again and when calls
// have waited for long, and a peer that keeps memory in use loses it after some seconds. Owned by Context, on
// its thread.
#pragma once

#include <cstdint>
#include <optional>

#include "session/session_table.h"
#include "session/shared.h"

namespace rdma_rpc::session {

class MemoryShortage {
 public:
  MemoryShortage(Shared& shared, SessionTable& sessions) : shared_(shared), sessions_(sessions) {}

  /// Calls wait in JS: tells them when memory has been given back since they asked.
  void tell_free();
  /// Calls have waited for long. JS hears of it once.
  void tell_short();
  /// Calls of others wait: takes back what one peer keeps in use that is stopped, or too slow. Returns that
  /// session, or null.
  Session* give_up();

 private:
  std::optional<std::uint64_t> refused_since();

  Shared& shared_;
  SessionTable& sessions_;
  std::uint64_t changes_ = 0;           ///< releases and registrations, when JS was last told of free memory
  std::uint64_t told_refusals_ = 0;     ///< of the arena, at that time
  std::uint64_t checked_refusals_ = 0;  ///< the same at the last give_up()
  std::uint64_t short_since_ns_ = 0;    ///< on the awake clock; 0 while memory is not short
  bool told_short_ = false;
};

}  // namespace rdma_rpc::session
