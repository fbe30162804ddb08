// Keeps the state that all devices of a simulated world share: clock, events, random numbers, queue pairs by
// number, faults. This file is internal to this folder. All of this code runs on one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "fabric/sim/faults.h"
#include "fabric/sim/sim.h"

namespace rdma_rpc::fabric {

class SimDevice;
class SimQueuePair;

class World {
 public:
  explicit World(SimOptions options);

  const SimOptions& options() const { return options_; }
  bool scheduled() const { return options_.mode == SimMode::scheduled; }
  std::uint64_t now() const { return now_; }
  std::uint64_t token() const { return token_; }

  /// Returns a random latency; 0 in immediate mode.
  std::uint64_t latency();
  std::uint64_t read_extra();
  /// These functions determine what happens to a packet that this UC or UD queue pair sends: how often it
  /// arrives, and how much later than the packet before it.
  std::uint32_t packet_copies(std::uint32_t qp_num);
  std::uint64_t packet_delay();
  std::uint64_t retry_timeout() const { return scheduled() ? options_.retry_timeout_ns : 0; }

  std::uint32_t add(SimQueuePair& qp);  ///< gives it a number, which is never reused
  void remove(SimQueuePair& qp);
  SimQueuePair* find(std::uint32_t qp_num) const;
  /// Returns the queue pairs. The queue pairs are ordered by number, so that loops over them run in the same
  /// order in each run with the same seed.
  const std::map<std::uint32_t, SimQueuePair*>& queue_pairs() const { return queue_pairs_; }

  /// Makes the queue pair look for work at that time. In immediate mode it looks in the next settle(),
  /// independent of the time.
  void wake(SimQueuePair& qp, std::uint64_t at);
  /// Wakes every queue pair that is connected to this one.
  void wake_peers_of(const SimQueuePair& qp);
  /// In immediate mode, executes everything that can be executed. Each function of the fabric that may create
  /// work calls this at its end.
  void settle();
  /// In scheduled mode, executes the next event due by `until`. Returns false when no such event exists.
  bool step(std::uint64_t until);
  void advance_to(std::uint64_t time) { now_ = time; }

  void completed(const Wc& wc);

  void set_stopped(const Device& device, bool stopped);
  void kill(const Device& device, WcStatus seen_by_peers);

  FaultPlan faults;
  SimCounters counters;
  std::function<void(const SimTrace&)> observer;
  std::vector<SimDevice*> devices;  ///< by id - 1; null when closed

 private:
  struct Event {
    std::uint64_t time, sequence;  // events of the same time keep the order in which they were requested
    std::uint32_t qp_num;
  };
  static bool later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }
  std::uint64_t random();
  bool chance(std::uint32_t ppm) { return ppm != 0 && random() % 1'000'000 < ppm; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + random() % (high - low + 1); }

  const SimOptions options_;
  const std::uint64_t token_;
  std::uint64_t now_ = 0, sequence_ = 0, random_state_;
  std::uint32_t last_qp_num_ = 0;
  std::vector<Event> events_;  // a heap by later()
  std::map<std::uint32_t, SimQueuePair*> queue_pairs_;
  std::vector<SimQueuePair*> ready_;  // has room for all queue pairs, so waking one allocates nothing
  bool settling_ = false;
};

}  // namespace rdma_rpc::fabric
