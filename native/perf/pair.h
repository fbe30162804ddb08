// One side of a test: an endpoint, and the loops that send on it, answer on it and look at what came. Used by
// the binding, which prepares on the JS thread and runs each step on a thread of its own, and by tests. One
// thread at a time, but for stop().
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/unique_fd.h"
#include "perf/clock.h"
#include "perf/endpoint.h"
#include "perf/layout.h"
#include "perf/pattern.h"
#include "perf/step.h"

namespace rdma_rpc::perf {

CpuTime cpu_time();

struct PeerAddress {
  std::vector<std::vector<std::byte>> queue_pairs;
  Memory memory;
};

class Pair {
 public:
  /// Null, and why.
  static std::unique_ptr<Pair> open(std::unique_ptr<Endpoint> endpoint, const PairOptions& options,
                                    std::string* error);
  /// What an endpoint for these options must have room for.
  static EndpointOptions needs(const PairOptions& options);

  Endpoint& endpoint() { return *endpoint_; }
  const Layout& layout() const { return layout_; }

  /// Begins to connect; empty, or why that peer cannot be reached. Before its peer greets a side must have
  /// returned from here: what comes earlier is lost where nothing is sent again.
  std::string connect(const PeerAddress& peer);
  /// Returns when each queue pair has carried a message both ways; empty, or why one has not.
  std::string greet();
  /// Makes memory ready for the step: before the peer begins it.
  void prepare(const Step& step);
  /// The step. `measured` is called on this thread when this side has sent what it measures; then it goes on
  /// to serve its peer until stop().
  Outcome run(const Step& step, const std::function<void(std::uint64_t messages)>& measured);
  /// From any thread: no more will come than so many messages in this step, all queue pairs together. What is
  /// still under way is taken first. A step that has not begun ends when it does.
  void stop(std::uint64_t expected = 0);
  /// After a step of writes: looks at what the peer has written last, in a test that validates. The peer says
  /// how many messages it has sent on each queue pair, in all steps so far.
  void check_written(const Step& step, std::uint64_t peer_sent, Outcome* outcome);

 private:
  /// Requests that one post hands down, and completions that one poll takes.
  static constexpr std::size_t kBatch = 32;
  /// Numbers go up over all steps.
  struct Queue {
    std::uint64_t posted = 0, completed = 0;
    std::uint64_t received = 0, told = 0;  ///< messages that have come; of which the peer knows
    std::uint64_t receives_posted = 0, receives_open = 0;
  };

  Pair(std::unique_ptr<Endpoint> endpoint, const PairOptions& options);

  Outcome measure_latency(const Step& step);
  Outcome measure_bandwidth(const Step& step);
  void serve(const Step& step);
  bool has_all(const Step& step);

  void answer(const Step& step, std::uint64_t number);
  void settle(const Step& step, std::uint64_t under_way);
  bool has_come(const Step& step, std::uint64_t number, bool look);
  bool await_written(const Step& step, std::uint64_t number);

  std::uint64_t room(const Step& step, std::uint32_t queue_pair, std::uint64_t until);
  bool post_messages(const Step& step, std::uint32_t queue_pair, std::uint64_t count, bool signal_last);
  void describe(const Step& step, std::uint32_t queue_pair, std::uint64_t number, Request* made);
  bool hand_over(std::uint32_t queue_pair, std::uint64_t count);
  /// Before the first post_next() of a step.
  void begin_latency(const Step& step);
  /// One message of a latency test: the last request again, but for its number.
  bool post_next(const Step& step, bool signal);
  void post_receive(std::uint32_t queue_pair);
  void tell_taken(std::uint32_t queue_pair);

  std::size_t poll(const Step* step);
  /// In latency tests: one message at a time is answered before the next is looked for.
  std::size_t poll_one(const Step& step);
  void take(const Step* step, const Completion& completion);
  void check(const Step& step, std::uint32_t queue_pair, std::uint64_t at, std::uint64_t number,
             std::uint64_t pattern_number, std::size_t bytes);
  void check_fetched(const Step& step, std::uint32_t queue_pair, std::uint64_t last);
  void check_received(const Step& step, std::uint32_t queue_pair, std::uint64_t at, std::uint32_t bytes);
  void check_count(std::uint64_t found, std::uint32_t queue_pair, std::uint64_t number);
  void corrupt(std::string what);
  std::uint64_t received() const;
  /// After a poll that found nothing. False: an error, or stopped.
  bool idle(bool limited) { return idle(limited, options_.events); }
  bool idle(bool limited, bool sleeps);
  bool ended() const { return !error_.empty() || stopped_.load(std::memory_order_relaxed); }
  void fail(std::string why);
  [[gnu::cold]] std::string what_failed(const Step* step, std::uint64_t id) const;
  [[gnu::cold]] void fail_on(std::uint32_t queue_pair, const std::string& what);

  Pattern pattern(std::uint32_t queue_pair, bool of_peer) const {
    return {options_.seed, std::uint64_t{2} * queue_pair + (options_.active != of_peer ? 0U : 1U)};
  }

  std::unique_ptr<Endpoint> endpoint_;
  PairOptions options_;
  Layout layout_;
  const bool reliable_, moves_in_poll_;
  std::byte* const data_;
  const std::uint32_t receive_bytes_;
  std::vector<Queue> queues_;
  fabric::UniqueFd wake_;
  std::atomic<bool> stopped_ = false;
  std::atomic<std::uint64_t> expected_ = 0;  ///< with `stopped_`
  std::uint64_t received_before_ = 0;        ///< this step
  std::string error_;
  std::uint64_t quiet_since_ns_ = 0;  ///< 0: something came with the last poll
  std::uint32_t quiet_turns_ = 0;
  std::uint64_t corrupt_ = 0;
  std::string first_corrupt_;
  std::uint32_t greetings_ = 0;
  Memory peer_;
  // Kept, since to make them anew for each message takes longer than to send one.
  std::array<Request, kBatch> requests_;
  std::array<Completion, kBatch> found_;
  /// Of measure_bandwidth(), by order: null where nobody wants to know.
  std::vector<std::uint64_t>* done_ticks_ = nullptr;
};

}  // namespace rdma_rpc::perf
