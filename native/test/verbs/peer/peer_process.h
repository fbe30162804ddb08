// Starts the other end of a session in a separate process, which can be killed or stopped at a chosen moment
// of a call. The process sends the signal to itself, so that the moment is exact. The test controls the
// process through a socket, and the process answers each order once. The tests of native/test/verbs use this
// file on the test's thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "verbs/devices/ends.h"

namespace rdma_rpc::session::test {

/// A moment in a process that serves or makes a call.
enum class Phase : std::uint8_t {
  none,
  before_request,  // client: memory is exposed, the request is not posted
  after_request,
  revoking,     // the answer has arrived, invalidations are posted
  before_read,  // server: the request has arrived
  read_under_way,
  handler,
  asking,  // requesting memory to WRITE its answer to
  before_write,
  write_under_way,
  before_response,
  after_response,
};

enum class Order : std::uint8_t {
  open,     ///< opens a session; a server's is connected at once, to `address`. Reply: its address
  connect,  ///< connects the session that was opened last, to `address`
  trip,     ///< sends `signal` to itself when `phase` comes, and again when `next_phase` comes after that
  start,    ///< starts `count` calls like `spec` on each session
  report,   ///< reports, after coming to rest
  quit,     ///< closes and audits everything
};

struct OrderMessage {
  Order order;
  bool client = false;
  std::uint32_t inflight_max = 8;
  std::uint64_t first_id = 0;
  Phase phase = Phase::none, next_phase = Phase::none;
  int signal = 0;
  CallSpec spec{};
  std::uint32_t count = 1;
  std::uint32_t address_bytes = 0;
  std::array<std::byte, 512> address{};
};

struct ReportMessage {
  std::uint32_t answered = 0, failed = 0, open = 0, up = 0, down = 0, violations = 0;
  std::uint32_t address_bytes = 0;
  std::array<std::byte, 512> address{};
  std::array<char, 512> text{};  ///< the first violation
  std::string violation() const { return text.data(); }
};

/// expect_foreign_calls() enters this number of calls of other processes in a ledger, which must know the
/// calls to serve them.
inline constexpr std::size_t kForeignCalls = 20'000;
void expect_foreign_calls(Ledger& ledger);

class PeerProcess {
 public:
  explicit PeerProcess(std::size_t end);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Waits for the answer of the process while `sides` continue.
  ReportMessage ask(OrderMessage order, std::vector<Side*> sides);
  ReportMessage ask(Order order, std::vector<Side*> sides) {
    return ask(OrderMessage{.order = order}, sides);
  }
  /// Opens a session of `side` with this process. Returns the number that the session has there.
  std::uint32_t connect_as_server_of(Side& side, std::uint32_t inflight_max = 8);
  std::uint32_t connect_as_client_of(Side& side, std::uint32_t inflight_max = 8);

  /// Waits for the signal. The process is stopped or dead when this returns.
  void signal(int number);
  void resume();
  /// Returns whether the process has stopped or killed itself.
  bool halted();
  bool dead() const { return dead_; }
  /// Ends the process in an orderly way. Fails the test if the process has left anything open.
  void quit(std::vector<Side*> sides);

 private:
  static std::uint64_t started_;
  std::uint64_t first_id_;
  pid_t pid_ = -1;
  int socket_ = -1;
  bool dead_ = false, halted_ = false;
};

/// Runs the process itself, which serves orders until the socket ends.
int run_peer(int socket, std::size_t end);

}  // namespace rdma_rpc::session::test
