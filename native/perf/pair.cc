// Implements the steps that all tests share: it connects, posts receives, polls completions, waits, and
// checks messages. See pair.h.
#include "perf/pair.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>

#include <cstring>

#include "perf/ticks.h"

namespace rdma_rpc::perf {
namespace {

/// Time for which this side waits without any message from the peer.
constexpr std::uint64_t kSilenceNs = 30'000'000'000;
constexpr int kLookMs = 200;
/// Number of unsuccessful polls per reading of the clock. Reading the clock takes longer than such a poll.
constexpr std::uint32_t kIterationsPerClock = 1024;
constexpr std::uint32_t kConnectMessageBytes = 8;

/// The id of a completion consists of its kind in the upper bits, then the queue pair, then a number.
enum class Kind : std::uint8_t { message, receive, credit, connect_message };
constexpr unsigned kKindShift = 62, kQueueShift = 46;
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kQueueShift) - 1;
constexpr std::uint64_t kQueueMask = (std::uint64_t{1} << (kKindShift - kQueueShift)) - 1;

std::uint64_t id_of(Kind kind, std::uint32_t queue_pair, std::uint64_t number) {
  return static_cast<std::uint64_t>(kind) << kKindShift | std::uint64_t{queue_pair} << kQueueShift |
         (number & kNumberMask);
}

std::uint64_t ns(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_usec) * 1'000;
}

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

CpuTime cpu_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return {ns(used.ru_utime), ns(used.ru_stime)};
}

EndpointOptions Pair::needs(const PairOptions& options) {
  // Number of requests in addition to messages: the credits and the first message.
  constexpr std::uint32_t kOthers = 16;
  // The device has not yet reported what it puts in front of messages: nothing, or the GRH of a datagram.
  constexpr std::uint32_t kGrhBytes = 40;
  return {.active = options.active,
          .transport = options.transport,
          .shared_receives = options.shared_receives,
          .multicast = options.multicast,
          .queue_pairs = options.queue_pairs,
          .send_wr_max = options.depth + kOthers,
          .recv_wr_max = options.receive_depth,
          .inline_max = options.inline_max,
          .memory_bytes = std::max(Layout(options).bytes(options.queue_pairs),
                                   Layout(options, kGrhBytes).bytes(options.queue_pairs))};
}

Pair::Pair(std::unique_ptr<Endpoint> endpoint, const PairOptions& options)
    : endpoint_(std::move(endpoint)),
      options_(options),
      layout_(options, endpoint_->limits().header_bytes),
      reliable_(endpoint_->limits().reliable),
      moves_in_poll_(endpoint_->limits().moves_in_poll),
      data_(endpoint_->data()),
      receive_bytes_(std::max<std::uint32_t>(options.bytes_max, kConnectMessageBytes) +
                     endpoint_->limits().header_bytes),
      queues_(options.queue_pairs),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!options_.validate) return;
  // A message keeps its slot until it has been sent and checked.
  const auto slots = static_cast<std::uint32_t>(layout_.slots());
  options_.depth = std::min(options_.depth, slots);
  options_.receive_depth = std::min(options_.receive_depth, slots);
}

std::unique_ptr<Pair> Pair::open(std::unique_ptr<Endpoint> endpoint, const PairOptions& options,
                                 std::string* error) {
  std::unique_ptr<Pair> pair(new Pair(std::move(endpoint), options));
  if (!pair->wake_) {
    *error = "no eventfd: the limit of open files (ulimit -n) is reached";
    return nullptr;
  }
  for (std::uint32_t i = 0; i < options.queue_pairs; ++i) {
    for (std::uint32_t j = 0; j < pair->options_.receive_depth; ++j) pair->post_receive(i);
  }
  *error = pair->error_;
  if (!error->empty()) return nullptr;
  return pair;
}

std::string Pair::connect(const PeerAddress& peer) {
  const auto count = options_.queue_pairs;
  if (peer.queue_pairs.size() != count) return "the peer has another number of queue pairs";
  if (peer.memory.bytes < layout_.bytes(count)) return "the peer's memory is too small for these messages";
  for (std::uint32_t i = 0; i < count; ++i) {
    if (std::string why = endpoint_->connect(i, peer.queue_pairs[i]); !why.empty()) return why;
  }
  peer_ = peer.memory;
  return {};
}

std::string Pair::exchange_connect_messages() {
  const auto count = options_.queue_pairs;
  // The active side sends first, because some devices require that. The message of the active side also tells
  // the other side that all queue pairs are connected.
  std::vector<bool> sent_to(count);
  const std::uint64_t until = now_ns() + kSilenceNs;
  std::uint32_t sent = 0;
  bool reached = false;
  while (error_.empty() && (sent < count || connect_messages_ < count)) {
    bool quiet = poll(nullptr) == 0;
    bool all = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (std::string why = endpoint_->error(i); !why.empty()) return why;
      all = all && endpoint_->is_connected(i);
    }
    if (all && !reached) {
      if (std::string why = endpoint_->reach(peer_); !why.empty()) return why;
      reached = true;
    }
    for (std::uint32_t i = 0; all && i < count; ++i) {
      if (sent_to[i] || (!options_.active && queues_[i].received == 0)) continue;
      const Request request{.id = id_of(Kind::connect_message, i, 0),
                            .verb = Verb::send,
                            .signaled = true,
                            .length = kConnectMessageBytes,
                            .from = layout_.connect_message(i)};
      if (endpoint_->post(i, {&request, 1}) != 1) return "a first message could not be sent";
      sent_to[i] = true;
      ++sent;
      quiet = false;
    }
    if (stopped_.load(std::memory_order_relaxed)) return "stopped";
    if (now_ns() > until) return "the peer has not connected within 30 s";
    if (options_.events && quiet) idle(false);
  }
  for (Queue& queue : queues_) queue.received = 0;
  return error_;
}

void Pair::prepare(const Step& step) {
  error_.clear();
  corrupt_ = 0;
  first_corrupt_.clear();
  stopped_.store(false, std::memory_order_relaxed);
  std::uint64_t count = 0;
  while (::read(wake_.get(), &count, sizeof count) > 0) {
  }
  for (std::uint32_t i = 0; i < options_.queue_pairs; ++i) {
    std::byte* memory = data_;
    if (step.verb == Verb::write && step.latency)
      memory[layout_.in(i, 0) + step.bytes - 1] = static_cast<std::byte>(queues_[i].received);
    if (!options_.validate) continue;
    for (std::uint64_t slot = 0; slot < layout_.slots() && step.verb == Verb::read; ++slot)
      pattern(i, false).fill({memory + layout_.out(i, slot), step.bytes}, slot);
  }
}

Outcome Pair::run(const Step& step, const std::function<void(std::uint64_t)>& measured) {
  quiet_since_ns_ = 0;
  received_before_ = received();
  const CpuTime before = cpu_time();
  const std::uint64_t begun = now_ns();
  Outcome outcome;
  if (step.measures) {
    outcome = step.latency ? measure_latency(step) : measure_bandwidth(step);
    // `measured` is called only now, when damaged messages have been counted.
    if (error_.empty() && !stopped_.load(std::memory_order_relaxed)) measured(outcome.messages);
  }
  if (!step.measures || error_.empty()) serve(step);
  if (!step.measures) {
    const CpuTime after = cpu_time();
    outcome.elapsed_ns = now_ns() - begun;
    outcome.cpu = {after.user_ns - before.user_ns, after.system_ns - before.system_ns};
  }
  outcome.received = received() - received_before_;
  outcome.error = error_;
  outcome.corrupt = corrupt_;
  outcome.first_corrupt = first_corrupt_;
  return outcome;
}

void Pair::stop(std::uint64_t expected) {
  expected_.store(expected, std::memory_order_relaxed);
  stopped_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

std::uint64_t Pair::received() const {
  std::uint64_t sum = 0;
  for (const Queue& queue : queues_) sum += queue.received;
  return sum;
}

void Pair::fail(std::string why) {
  if (error_.empty()) error_ = std::move(why);
}

bool Pair::idle(bool limited, bool sleeps) {
  if (ended()) return false;
  if (!sleeps) {
    if (++quiet_iterations_ % kIterationsPerClock != 0) return true;
  } else if (endpoint_->arm()) {
    pollfd wakes[] = {{endpoint_->fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    ::poll(wakes, 2, kLookMs);
    endpoint_->acknowledge();
  }
  const std::uint64_t now = now_ns();
  if (quiet_since_ns_ == 0) quiet_since_ns_ = now;
  if (limited && now - quiet_since_ns_ > kSilenceNs) fail("the peer has done nothing for 30 s");
  return !ended();
}

std::size_t Pair::poll(const Step* step) {
  if (step != nullptr && step->latency) return poll_one(*step);
  const std::size_t count = endpoint_->poll(found_);
  if (count != 0) {
    quiet_since_ns_ = 0;
    quiet_iterations_ = 0;
  }
  for (std::size_t i = 0; i < count; ++i) take(step, found_[i]);
  const bool tells = count != 0 && step != nullptr && step->verb == Verb::send && reliable_;
  for (std::uint32_t i = 0; tells && i < options_.queue_pairs; ++i) tell_taken(i);
  return count;
}

std::size_t Pair::poll_one(const Step& step) {
  if (endpoint_->poll({found_.data(), 1}) != 0) {
    quiet_since_ns_ = 0;
    quiet_iterations_ = 0;
    take(&step, found_[0]);
    return 1;
  }
  while (queues_[0].receives_open < options_.receive_depth && error_.empty()) post_receive(0);
  return 0;
}

// Rare work is in separate functions (here and in validation.cc), so that the code between a message and its
// answer stays together. On an emulated processor, each page of code costs time.
void Pair::take(const Step* step, const Completion& completion) {
  const auto kind = static_cast<Kind>(completion.id >> kKindShift);
  const auto queue_pair = static_cast<std::uint32_t>(completion.id >> kQueueShift & kQueueMask);
  const std::uint64_t number = completion.id & kNumberMask;
  Queue& queue = queues_[queue_pair];
  if (completion.failure != nullptr) {
    fail_on(queue_pair, completion.failure + what_failed(step, completion.id));
    return;
  }
  if (kind == Kind::message) {
    if (step == nullptr || queue.completed > number) return;
    if (done_ticks_ != nullptr)
      done_ticks_->insert(done_ticks_->end(), number + 1 - queue.completed, ticks());
    if (options_.validate) check_fetched(*step, queue_pair, number);
    queue.completed = number + 1;
    return;
  }
  if (kind != Kind::receive) return;
  --queue.receives_open;
  if (completion.looped_back) return post_receive(queue_pair);
  const std::uint32_t came_on = options_.shared_receives ? completion.queue_pair : queue_pair;
  if (step == nullptr) {
    ++connect_messages_;
  } else if (options_.validate) {
    check_received(*step, came_on, layout_.in(queue_pair, number), completion.bytes);
  }
  ++queues_[came_on].received;
  // In a latency test, receives are posted while nothing arrives, so that no post comes between a message and
  // its answer.
  const bool later = step != nullptr && step->latency && queue.receives_open > options_.receive_depth / 2;
  if (!later) post_receive(queue_pair);
}

/// Describes the request or receive with this id, for an error text.
std::string Pair::what_failed(const Step* step, std::uint64_t id) const {
  static constexpr const char* kVerbs[] = {"SEND", "WRITE", "READ", "fetch_add", "compare_swap"};
  const auto kind = static_cast<Kind>(id >> kKindShift);
  const std::string number = std::to_string(id & kNumberMask);
  const std::string at = " on queue pair " + std::to_string(id >> kQueueShift & kQueueMask) + ")";
  if (kind == Kind::receive) return " (receive " + number + at;
  if (kind == Kind::credit) return " (WRITE of how many have come" + at;
  if (kind == Kind::connect_message || step == nullptr) return " (connect message" + at;
  return std::string(" (") + kVerbs[static_cast<std::size_t>(step->verb)] + " " + number + ", " +
         std::to_string(step->bytes) + " bytes," + at;
}

void Pair::fail_on(std::uint32_t queue_pair, const std::string& what) {
  const std::string why = endpoint_->error(queue_pair);
  fail(what + (why.empty() ? "" : ": " + why));
}

void Pair::post_receive(std::uint32_t queue_pair) {
  Queue& queue = queues_[queue_pair];
  const std::uint64_t number = queue.receives_posted;
  if (endpoint_->post_receive(queue_pair, id_of(Kind::receive, queue_pair, number),
                              layout_.in(queue_pair, number), receive_bytes_)) {
    ++queue.receives_posted;
    ++queue.receives_open;
  } else {
    fail_on(queue_pair, "a receive could not be posted");
  }
}

/// Tells the peer how many messages were received. The function is called rarely, so that no message is
/// delayed. A sender that knows of no receive waits, because on most fabrics a message without a receive ends
/// the queue pair.
void Pair::tell_taken(std::uint32_t queue_pair) {
  Queue& queue = queues_[queue_pair];
  if (queue.received - queue.notified < std::max(1U, options_.receive_depth / 2)) return;
  std::memcpy(data_ + layout_.taken_here(queue_pair), &queue.received, sizeof queue.received);
  const Request credit{.id = id_of(Kind::credit, queue_pair, 0),
                       .verb = Verb::write,
                       .signaled = true,
                       .length = sizeof queue.received,
                       .from = layout_.taken_here(queue_pair),
                       .to = layout_.taken(queue_pair)};
  // If the queue is full, this is tried again after the next successful poll, which frees an entry.
  if (endpoint_->post(queue_pair, {&credit, 1}) == 1) queue.notified = queue.received;
}

void Pair::describe(const Step& step, std::uint32_t queue_pair, std::uint64_t number, Request* made) {
  const bool fetches = step.verb != Verb::send && step.verb != Verb::write;
  const bool atomic = fetches && step.verb != Verb::read;
  const std::uint64_t slot = step.latency ? 0 : number;
  made->id = id_of(Kind::message, queue_pair, number);
  made->verb = step.verb;
  made->length = atomic ? static_cast<std::uint32_t>(sizeof number) : step.bytes;
  made->from = fetches ? layout_.in(queue_pair, number) : layout_.out(queue_pair, slot);
  made->to = atomic                    ? layout_.counter(queue_pair)
             : step.verb == Verb::read ? layout_.out(queue_pair, number)
                                       : layout_.in(queue_pair, slot);
  made->operand = step.verb == Verb::compare_swap ? number : 1;
  made->swap = number + 1;
  if (!options_.validate) return;
  std::byte* memory = data_ + made->from;
  if (fetches) {
    // Bytes that are never written must differ from bytes that were written.
    std::memset(memory, 0xa5, made->length);
  } else {
    pattern(queue_pair, false).fill({memory, step.bytes}, number);
  }
}

bool Pair::post_messages(const Step& step, std::uint32_t queue_pair, std::uint64_t count, bool signal_last) {
  Queue& queue = queues_[queue_pair];
  count = std::min<std::uint64_t>(count, kBatch);
  // The depth may have been reduced to the number of slots. Without a signaled request the queue would then
  // stay full.
  const auto every = std::min(step.signal_every, options_.depth);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = queue.posted + i;
    describe(step, queue_pair, number, &requests_[i]);
    requests_[i].signaled = every == 1 || (signal_last && i + 1 == count) || (number + 1) % every == 0;
    if (step.verb == Verb::write && step.latency)
      data_[requests_[i].from + step.bytes - 1] = static_cast<std::byte>(number + 1);
  }
  return hand_over(queue_pair, count);
}

void Pair::begin_latency(const Step& step) {
  if (!options_.validate) describe(step, 0, queues_[0].posted, &requests_[0]);
}

bool Pair::post_next(const Step& step, bool signal) {
  if (options_.validate) return post_messages(step, 0, 1, signal);
  const std::uint64_t number = queues_[0].posted;
  Request& next = requests_[0];
  next.id = id_of(Kind::message, 0, number);
  next.signaled =
      signal || step.signal_every == 1 || (number + 1) % std::min(step.signal_every, options_.depth) == 0;
  if (step.verb == Verb::compare_swap) next.operand = number;
  next.swap = number + 1;
  if (step.verb == Verb::write) data_[next.from + step.bytes - 1] = static_cast<std::byte>(number + 1);
  return hand_over(0, 1);
}

bool Pair::hand_over(std::uint32_t queue_pair, std::uint64_t count) {
  if (endpoint_->post(queue_pair, {requests_.data(), count}) != count) {
    fail_on(queue_pair, "the send queue took no request");
    return false;
  }
  queues_[queue_pair].posted += count;
  return true;
}

}  // namespace rdma_rpc::perf
