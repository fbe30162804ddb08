// The simulated fabric is a world of devices inside one process, with a seed, a virtual clock and fault
// hooks. Sessions are tested on it, and the in-process channel uses it in users' own tests. Tests and the
// binding create worlds. A world and all its devices belong to one thread, so nothing here locks. Queue pairs
// of any two devices of one world can connect.
//
// A world has one of two modes:
//  - immediate: a request takes effect inside post_send, and its completion can be polled at once. The clock
//    is not used.
//  - scheduled: each request takes effect at a time drawn from the latency model, when the test moves the
//    clock. Only the rules of RC hold: a READ may be executed after later requests unless they are fenced, a
//    receive may be polled before the sender's completion, and a queue pair that went to ERR may still move
//    bytes until its flush can be polled.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// Returns the capabilities of a powerful NIC. When a test removes some of them, sim behaves like a device
/// without them.
Capabilities sim_capabilities();

enum class SimMode : std::uint8_t { immediate, scheduled };

struct SimOptions {
  std::uint64_t seed = 1;
  SimMode mode = SimMode::immediate;
  Capabilities capabilities = sim_capabilities();
  /// When true, connect() returns while the queue pair is still in RTR, and a poll() after one latency
  /// finishes the attempt.
  bool connects_late = false;
  /// When true, only completions that were polled are known to have been in the queue, as on a device.
  bool hides_completions = false;
  std::uint64_t registered_bytes_max = 0;  ///< for each device, like RLIMIT_MEMLOCK; 0 for no limit
  // The latency of one way in scheduled mode, uniformly distributed in [min, max].
  std::uint64_t latency_min_ns = 1'000;
  std::uint64_t latency_max_ns = 5'000;
  std::uint64_t read_extra_max_ns = 10'000;    ///< limit of the delay of a READ's copy after its turn
  std::uint64_t retry_timeout_ns = 1'000'000;  ///< time after which an unanswered request fails
  // The network of UC and UD: how many of a million packets are lost, and how many are duplicated. These
  // losses do not apply to RC, because RC would send lost packets again.
  std::uint32_t loss_ppm = 0, duplicate_ppm = 0;
  /// Number of packets in a million that are delayed by up to reorder_max_ns, so that later packets overtake
  /// them. This works in scheduled mode only.
  std::uint32_t reorder_ppm = 0;
  std::uint64_t reorder_max_ns = 20'000;
};

/// One injected failure: the `nth` matching request from now on fails with `status` and moves no byte. With
/// rem_access_err and rem_inv_req_err the peer also goes to ERR, as if it had found the violation.
/// Opcode::recv means the nth receive for which a message arrives. A failure happens only once.
struct SimFault {
  std::optional<Opcode> opcode = {};  ///< absent for any opcode except recv
  std::uint32_t qp_num = 0;           ///< 0 for any queue pair
  const Device* device = nullptr;     ///< null for any device
  std::uint64_t nth = 1;
  WcStatus status = WcStatus::general_err;
};

enum class SimResource : std::uint8_t { memory, region, window, completion_queue, queue_pair, receive_queue };

struct SimCounters {
  /// The index is the Opcode. `recv` counts receives that got a message.
  std::array<std::uint64_t, kOpcodes> carried_out{};
  std::uint64_t completions = 0;
  std::uint64_t cq_overruns =
      0;  ///< completions beyond the capacity given to create_cq; a NIC would have lost them
  std::uint64_t faults = 0;                             ///< injected faults that have fired
  std::uint64_t packets_lost = 0, packets_doubled = 0;  ///< packets of UC and UD

  std::uint64_t of(Opcode opcode) const { return carried_out[static_cast<std::size_t>(opcode)]; }
};

struct SimTrace {
  std::uint64_t time_ns;
  Wc completion;
};

class World;

/// Must outlive its devices.
class SimWorld {
 public:
  explicit SimWorld(SimOptions options = {});
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  /// Opens a device. `name` becomes its Capabilities::name.
  std::unique_ptr<Device> open_device(std::string name = "sim");

  std::uint64_t now_ns() const;
  /// Moves the clock, and executes everything that becomes due until the new time. In immediate mode nothing
  /// ever waits for the clock.
  void advance(std::uint64_t ns);
  /// Moves the clock to the next event and executes it. Returns false when no event is planned.
  bool step();
  void run_until_idle();

  void fail(const SimFault& fault);
  /// Loses the nth packet (counted from 1) that this UC or UD queue pair sends from now on.
  void lose_packet(std::uint32_t qp_num, std::uint64_t nth);
  /// Refuses the nth creation (counted from 1) of this kind from now on. This happens only once.
  void fail_nth(SimResource resource, std::uint64_t nth);
  /// Makes the next connection attempt in progress fail for this reason. Works only with connects_late.
  void fail_connect(std::string why);
  /// Delays the effect of each later request of this queue pair by that time. This works in scheduled mode
  /// only.
  void delay(std::uint32_t qp_num, std::uint64_t extra_ns);
  /// Withholds completions of this queue pair until they are released; without a release they are lost. The
  /// requests are still executed.
  void hold_completions(std::uint32_t qp_num);
  void release_completions(std::uint32_t qp_num);
  /// Stops the device. The queue pair then starts no request and answers none, and its peers wait without an
  /// error.
  void stop(const Device& device);
  void resume(const Device& device);
  /// Acts as if the process of this queue pair had been killed. The queue pair does nothing more, and the
  /// peer's requests end with `seen_by_peer` (after retry_timeout_ns in scheduled mode).
  void kill(std::uint32_t qp_num, WcStatus seen_by_peer = WcStatus::retry_exc_err);
  /// Does the same for all current queue pairs of the device.
  void kill(const Device& device, WcStatus seen_by_peers = WcStatus::retry_exc_err);

  SimCounters counters() const;
  /// Calls `observer` with each completion when it is created. The observer must not call the fabric.
  void on_completion(std::function<void(const SimTrace&)> observer);

 private:
  std::unique_ptr<World> world_;
};

}  // namespace rdma_rpc::fabric
