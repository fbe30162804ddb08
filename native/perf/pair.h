// Implements one side of a test: an endpoint, and the loops that send on it, answer, and check what arrives.
// This file is used by tests and by the binding, which prepares a step on the JS thread and runs it on a
// thread of its own. Only one thread at a time may use a Pair, except for stop().
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
  /// Returns null, with the reason in `error`, when the resources cannot be created.
  static std::unique_ptr<Pair> open(std::unique_ptr<Endpoint> endpoint, const PairOptions& options,
                                    std::string* error);
  /// Returns the resources that an endpoint for these options needs.
  static EndpointOptions needs(const PairOptions& options);

  Endpoint& endpoint() { return *endpoint_; }
  const Layout& layout() const { return layout_; }

  /// Starts to connect. Returns "", or why that peer cannot be reached. The peer may send its first message
  /// only after this call has returned, because on unreliable connections an earlier message is lost.
  std::string connect(const PeerAddress& peer);
  /// Waits until each queue pair has carried a message in both directions. Returns "", or the reason why one
  /// of them has not.
  std::string exchange_connect_messages();
  /// Fills the memory for the step. Must be called before the peer begins the step.
  void prepare(const Step& step);
  /// Runs the step. `measured` is called on this thread when this side has sent everything that it measures;
  /// after that this side continues to serve its peer until stop().
  Outcome run(const Step& step, const std::function<void(std::uint64_t messages)>& measured);
  /// Announces that at most `expected` messages will arrive in this step, on all queue pairs together. May be
  /// called on any thread. Messages in flight are received first. If the step has not begun, it ends as soon
  /// as it begins.
  void stop(std::uint64_t expected = 0);
  /// Checks the peer's last WRITEs, after a step of writes in a test that validates. `peer_sent` is the
  /// number of messages that the peer has sent on each queue pair, in all steps so far.
  void check_written(const Step& step, std::uint64_t peer_sent, Outcome* outcome);

 private:
  /// Limit of requests per post and of completions per poll.
  static constexpr std::size_t kBatch = 32;
  /// The numbers increase over all steps.
  struct Queue {
    std::uint64_t posted = 0, completed = 0;
    std::uint64_t received = 0,
                  notified = 0;  ///< number of messages received, and how many of them the peer knows of
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
  /// Must be called before the first post_next() of a step.
  void begin_latency(const Step& step);
  /// Posts one message of a latency test, which is the previous request with another number.
  bool post_next(const Step& step, bool signal);
  void post_receive(std::uint32_t queue_pair);
  void tell_taken(std::uint32_t queue_pair);

  std::size_t poll(const Step* step);
  /// Polls one completion. This is for latency tests, in which each message is answered before the next one
  /// is looked for.
  std::size_t poll_one(const Step& step);
  void take(const Step* step, const Completion& completion);
  void check(const Step& step, std::uint32_t queue_pair, std::uint64_t at, std::uint64_t number,
             std::uint64_t pattern_number, std::size_t bytes);
  void check_fetched(const Step& step, std::uint32_t queue_pair, std::uint64_t last);
  void check_received(const Step& step, std::uint32_t queue_pair, std::uint64_t at, std::uint32_t bytes);
  void check_count(std::uint64_t found, std::uint32_t queue_pair, std::uint64_t number);
  void corrupt(std::string what);
  std::uint64_t received() const;
  /// Must be called after a poll that found nothing. Returns false after an error, or when the step was
  /// stopped.
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
  std::atomic<std::uint64_t> expected_ = 0;  ///< valid when `stopped_` is true
  std::uint64_t received_before_ = 0;        ///< number of messages received before this step
  std::string error_;
  std::uint64_t quiet_since_ns_ = 0;  ///< 0 when the last poll found something
  std::uint32_t quiet_iterations_ = 0;
  std::uint64_t corrupt_ = 0;
  std::string first_corrupt_;
  std::uint32_t connect_messages_ = 0;
  Memory peer_;
  // These arrays are kept between posts, because building them again for each message takes longer than
  // sending a message.
  std::array<Request, kBatch> requests_;
  std::array<Completion, kBatch> found_;
  /// Completion times of measure_bandwidth(), in order; null when they are not needed.
  std::vector<std::uint64_t>* done_ticks_ = nullptr;
};

}  // namespace rdma_rpc::perf
