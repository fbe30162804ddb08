// An endpoint contains everything that the loops of native/perf use: queue pairs to one peer, on one
// completion queue, with one memory region on each side. Endpoints are implemented on any fabric
// (fabric_endpoint.h) and on libibverbs alone (bare/). Endpoints are created on the JS thread. From connect()
// on, one thread at a time uses an endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rdma_rpc::perf {

enum class Verb : std::uint8_t { send, write, read, fetch_add, compare_swap };
/// Type of the queue pairs.
enum class Transport : std::uint8_t { rc, uc, ud };

/// Capabilities of the device on this side.
struct Limits {
  std::string device;             ///< for display
  std::uint64_t message_max = 0;  ///< limit of one message, in bytes
  std::uint32_t inline_max = 0;   ///< limit of the bytes that a post copies
  bool atomic = false;            ///< supports fetch_add and compare_swap
  bool reliable = true;           ///< sent messages arrive, or an error is reported
  bool moves_in_poll = false;  ///< WRITEs of the peer arrive only while this side polls its completion queue
  std::uint32_t header_bytes = 0;  ///< bytes in front of a message in its receive (UD)
};

/// A request. The offsets of a request refer to the memory of the two sides.
struct Request {
  std::uint64_t id = 0;
  Verb verb = Verb::send;
  bool signaled = false;
  std::uint32_t length = 0;
  std::uint64_t from = 0;     ///< on this side; for READs and atomics, the destination of the result
  std::uint64_t to = 0;       ///< on the peer; unused by send
  std::uint64_t operand = 0;  ///< fetch_add: the value added; compare_swap: the value expected
  std::uint64_t swap = 0;
};

struct Completion {
  std::uint64_t id = 0;
  bool received = false;    ///< true for a receive, false for a request of this side
  std::uint32_t bytes = 0;  ///< for a receive: its length without the header
  /// For a shared receive, this is the queue pair on which the message arrived. That queue pair may differ
  /// from the queue pair for which the receive was posted.
  std::uint32_t queue_pair = 0;
  bool looped_back = false;       ///< for a receive: this side has sent the message itself, to its group
  const char* failure = nullptr;  ///< null on success, otherwise the text of the status
};

/// The data that the peer needs to access this memory.
struct Memory {
  std::uint64_t addr = 0;
  std::uint64_t bytes = 0;
  std::uint32_t rkey = 0;
};

struct EndpointOptions {
  bool active = true;  ///< requests the connections, and sends first
  Transport transport = Transport::rc;
  bool shared_receives = false;  ///< all queue pairs use receives of one queue
  bool multicast = false;        ///< UD: both sides join a group, and send to it
  std::uint32_t queue_pairs = 1;
  std::uint32_t send_wr_max = 0;
  std::uint32_t recv_wr_max = 0;
  std::uint32_t inline_max = 0;  ///< longer messages are not sent inline
  std::size_t memory_bytes = 0;
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  virtual const Limits& limits() const = 0;
  virtual std::byte* data() = 0;
  virtual Memory memory() const = 0;
  virtual std::vector<std::byte> address(std::uint32_t queue_pair) const = 0;

  /// Starts to connect. Returns "", or why the peer cannot be reached. The bytes of `peer` are untrusted.
  virtual std::string connect(std::uint32_t queue_pair, std::span<const std::byte> peer) = 0;
  /// Must be called once, after all queue pairs are connected. Returns "", or why the peer's memory cannot be
  /// reached.
  virtual std::string reach(const Memory& peer) = 0;
  /// Returns whether requests may be posted. Polling advances the connection.
  virtual bool is_connected(std::uint32_t queue_pair) const = 0;
  /// Returns why the endpoint has failed; "" while it works.
  virtual std::string error(std::uint32_t queue_pair) const = 0;

  /// Posts in order. Returns how many requests were accepted.
  virtual std::size_t post(std::uint32_t queue_pair, std::span<const Request> requests) = 0;
  virtual bool post_receive(std::uint32_t queue_pair, std::uint64_t id, std::uint64_t to,
                            std::uint32_t length) = 0;
  virtual std::size_t poll(std::span<Completion> out) = 0;
  /// These functions work as in CompletionQueue (fabric.h).
  virtual bool arm() = 0;
  virtual void acknowledge() = 0;
  virtual int fd() const = 0;

 protected:
  Endpoint() = default;
};

}  // namespace rdma_rpc::perf
