// The simulated fabric: a world of devices inside one process, with a seed, a virtual clock and fault hooks.
// It is what sessions are tested on, and the fabric of the in-process channel that users get for their own
// tests. Made by tests and by the binding. A world and all its devices belong to one thread; nothing here
// locks. Queue pairs of any two devices of one world can connect.
//
// Two modes:
//  - immediate: a request takes effect inside post_send, and its completion can be polled at once. No clock.
//  - scheduled: each request takes effect at a time drawn from the latency model, when the test moves the
//    clock. The rules of RC hold and nothing more: a READ may be carried out after later requests unless they
//    are fenced, a receive may be polled before the sender's completion, and a queue pair that went to ERR
//    may still move bytes until its flush is there to be polled.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// A capable NIC. Tests take away what they want to do without; sim keeps to what is left.
Capabilities sim_capabilities();

enum class SimMode : std::uint8_t { immediate, scheduled };

struct SimOptions {
  std::uint64_t seed = 1;
  SimMode mode = SimMode::immediate;
  Capabilities capabilities = sim_capabilities();
  /// connect() returns while the queue pair is still in RTR; a poll() after one latency moves it on.
  bool connects_late = false;
  /// As on a device, nothing is known of what lies in a completion queue but what has been taken out.
  bool hides_completions = false;
  std::uint64_t registered_bytes_max = 0;  ///< per device, as RLIMIT_MEMLOCK would; 0: no limit
  // The latency model, scheduled mode only. One way; drawn evenly from [min, max].
  std::uint64_t latency_min_ns = 1'000;
  std::uint64_t latency_max_ns = 5'000;
  std::uint64_t read_extra_max_ns = 10'000;    ///< how long after its turn a READ may be carried out
  std::uint64_t retry_timeout_ns = 1'000'000;  ///< until a peer that does not answer becomes an error
};

/// One injected failure: the `nth` request from now on that matches fails with `status` and moves no byte.
/// With rem_access_err and rem_inv_req_err the peer goes to ERR too, as it would have found the violation.
/// Opcode::recv means the nth receive that a message arrives for. Fires once.
struct SimFault {
  std::optional<Opcode> opcode = {};  ///< none: any but recv
  std::uint32_t qp_num = 0;           ///< 0: any
  const Device* device = nullptr;     ///< null: any
  std::uint64_t nth = 1;
  WcStatus status = WcStatus::general_err;
};

enum class SimResource : std::uint8_t { memory, region, window, completion_queue, queue_pair, receive_queue };

struct SimCounters {
  /// By Opcode; `recv` counts receives that a message arrived in.
  std::array<std::uint64_t, 9> carried_out{};
  std::uint64_t completions = 0;
  std::uint64_t cq_overruns =
      0;                     ///< completions beyond what create_cq was asked for; a NIC would have lost them
  std::uint64_t faults = 0;  ///< injected and fired

  std::uint64_t of(Opcode opcode) const { return carried_out[static_cast<std::size_t>(opcode)]; }
};

struct SimTrace {
  std::uint64_t time_ns;
  Wc completion;
};

class World;

/// Outlives its devices.
class SimWorld {
 public:
  explicit SimWorld(SimOptions options = {});
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  /// `name` becomes Capabilities::name.
  std::unique_ptr<Device> open_device(std::string name = "sim");

  std::uint64_t now_ns() const;
  /// Moves the clock, carrying out on the way what falls due. In immediate mode nothing ever waits for it.
  void advance(std::uint64_t ns);
  /// Moves the clock to the next event and carries it out; false when there is none.
  bool step();
  void run_until_idle();

  void fail(const SimFault& fault);
  /// The nth (from 1) creation of this kind from now on is refused. Fires once.
  void fail_nth(SimResource resource, std::uint64_t nth);
  /// The next connection under way comes to nothing, for this reason. With connects_late only.
  void fail_connect(std::string why);
  /// Every later request of this queue pair takes so much longer to take effect. Scheduled mode only.
  void delay(std::uint32_t qp_num, std::uint64_t extra_ns);
  /// Completions of this queue pair stay back until released ("lost" when they never are). The work itself is
  /// done.
  void hold_completions(std::uint32_t qp_num);
  void release_completions(std::uint32_t qp_num);
  /// The device neither starts nor answers anything; those who talk to it wait, without an error.
  void stop(const Device& device);
  void resume(const Device& device);
  /// As if its process had been killed: the queue pair does nothing any more, and what its peer sends ends
  /// with `seen_by_peer` (after retry_timeout_ns in scheduled mode).
  void kill(std::uint32_t qp_num, WcStatus seen_by_peer = WcStatus::retry_exc_err);
  /// The same for all queue pairs that the device has now.
  void kill(const Device& device, WcStatus seen_by_peers = WcStatus::retry_exc_err);

  SimCounters counters() const;
  /// Called with each completion as it is made. It must not call the fabric.
  void on_completion(std::function<void(const SimTrace&)> observer);

 private:
  std::unique_ptr<World> world_;
};

}  // namespace rdma_rpc::fabric
