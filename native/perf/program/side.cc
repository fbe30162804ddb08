// See side.h.
#include "perf/program/side.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "perf/program/opening.h"

namespace rdma_rpc::perf {
namespace {

Transport read_transport(const std::string& connection) {
  if (connection == "UD") return Transport::ud;
  return connection == "UC" ? Transport::uc : Transport::rc;
}

PairOptions read_options(const Words& asked) {
  return {.active = asked.is("active"),
          .queue_pairs = asked.small("queuePairs"),
          .depth = asked.small("depth"),
          .receive_depth = asked.small("receiveDepth"),
          .bytes_max = asked.small("bytesMax"),
          .inline_max = asked.small("inlineMax"),
          .validate = asked.is("validate"),
          .transport = read_transport(asked.text("connection")),
          .shared_receives = asked.is("sharedReceives"),
          .multicast = asked.is("multicast"),
          .events = asked.is("events"),
          .seed = asked.number("seed")};
}

Verb read_verb(const std::string& name) {
  if (name == "send") return Verb::send;
  if (name == "write") return Verb::write;
  if (name == "read") return Verb::read;
  return name == "fetch_add" ? Verb::fetch_add : Verb::compare_swap;
}

Step read_step(const Words& asked) {
  return {.verb = read_verb(asked.text("verb")),
          .latency = asked.is("latency"),
          .measures = asked.is("measures"),
          .receives = asked.is("receives"),
          .bytes = asked.small("bytes"),
          .messages = asked.number("messages"),
          .duration_ns = asked.number("durationNs"),
          .signal_every = asked.small("signalEvery"),
          .post_list = asked.small("postList")};
}

/// Parses addresses that are written as hexadecimal digits and separated by commas.
std::vector<std::vector<std::byte>> read_queue_pairs(std::string_view text) {
  std::vector<std::vector<std::byte>> all(1);
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ',') {
      all.emplace_back();
      ++i;
      continue;
    }
    unsigned code = 0;
    std::from_chars(text.data() + i, text.data() + std::min(i + 2, text.size()), code, 16);
    all.back().push_back(static_cast<std::byte>(code));
    i += 2;
  }
  return all;
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string all;
  for (const std::byte each : bytes) {
    all.push_back(kDigits[std::to_integer<unsigned>(each) >> 4]);
    all.push_back(kDigits[std::to_integer<unsigned>(each) & 15]);
  }
  return all;
}

/// Latencies are sent behind the line, because a step may have ten million.
Line line_of(const char* name, const Outcome& outcome) {
  return Line(name)
      .text("error", outcome.error)
      .number("messages", outcome.messages)
      .number("received", outcome.received)
      .number("elapsedNs", outcome.elapsed_ns)
      .number("userNs", outcome.cpu.user_ns)
      .number("systemNs", outcome.cpu.system_ns)
      .number("peakNs", outcome.peak_ns)
      .number("corrupt", outcome.corrupt)
      .text("firstCorrupt", outcome.first_corrupt)
      .number("bytesBehind", std::as_bytes(std::span(outcome.latency_ns)).size());
}

}  // namespace

void Output::say(const Line& line, std::span<const std::byte> behind) {
  const std::string text = line.all();
  const std::lock_guard lock(mutex_);
  if (write_all(std::as_bytes(std::span(text)))) write_all(behind);
}

bool Output::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return true;
}

Side::~Side() {
  if (pair_ != nullptr) pair_->stop();
  join();
}

void Side::take(const Words& asked) {
  const std::string& name = asked.name();
  if (name == "open") return open(asked);
  if (pair_ == nullptr) return output_->say(Line("failed").text("why", "nothing is open"));
  if (name == "stop") return pair_->stop(asked.number("expected"));
  // All other instructions use the pair themselves.
  join();
  if (name == "connect") return connect(asked);
  if (name == "prepare") return prepare(asked);
  if (name == "run") return run(asked);
  if (name == "check") return check(asked);
  output_->say(Line("failed").text("why", "unknown: " + name));
}

void Side::open(const Words& asked) {
  if (asked.number("lines") != kLines)
    return output_->say(
        Line("failed").text("why", "rdma_rpc_perf is of another version of rdma-rpc: build it again"));
  const PairOptions options = read_options(asked);
  std::string error;
  std::unique_ptr<Endpoint> endpoint = open_endpoint(asked, Pair::needs(options), &error);
  if (endpoint != nullptr) pair_ = Pair::open(std::move(endpoint), options, &error);
  if (pair_ == nullptr) return output_->say(Line("failed").text("why", error));
  const Endpoint& opened = pair_->endpoint();
  std::string queue_pairs;
  for (std::uint32_t i = 0; i < options.queue_pairs; ++i) {
    if (i > 0) queue_pairs.push_back(',');
    queue_pairs.append(hex(opened.address(i)));
  }
  const auto [addr, bytes, rkey] = opened.memory();
  output_->say(Line("opened")
                   .text("device", opened.limits().device)
                   .number("messageMax", opened.limits().message_max)
                   .text("atomic", opened.limits().atomic ? "true" : "false")
                   .number("addr", addr)
                   .number("bytes", bytes)
                   .number("rkey", std::uint64_t{rkey})
                   .text("queuePairs", queue_pairs));
}

void Side::connect(const Words& asked) {
  const Memory memory{asked.number("addr"), asked.number("bytes"), asked.small("rkey")};
  std::string why = pair_->connect({read_queue_pairs(asked.text("queuePairs")), memory});
  if (!why.empty()) return output_->say(Line("connected").text("why", why));
  start([this] { output_->say(Line("connected").text("why", pair_->exchange_connect_messages())); });
}

void Side::prepare(const Words& asked) {
  pair_->prepare(read_step(asked));
  output_->say(Line("prepared"));
}

void Side::run(const Words& asked) {
  start([this, step = read_step(asked)] {
    // Gives the thread a file table of its own. When threads share a file table, the kernel counts the users
    // of a file twice for each doorbell that is a system call. A step opens no file.
    ::unshare(CLONE_FILES);
    const Outcome outcome = pair_->run(step, [this](std::uint64_t messages) {
      output_->say(Line("measured").number("messages", messages));
    });
    output_->say(line_of("ended", outcome), std::as_bytes(std::span(outcome.latency_ns)));
  });
}

void Side::check(const Words& asked) {
  Outcome outcome;
  pair_->check_written(read_step(asked), asked.number("sent"), &outcome);
  output_->say(line_of("checked", outcome));
}

void Side::start(std::function<void()> work) {
  work_ = std::move(work);
  const auto begin = [](void* self) -> void* {
    static_cast<Side*>(self)->work_();
    return nullptr;
  };
  working_ = ::pthread_create(&thread_, nullptr, begin, this) == 0;
  if (!working_) output_->say(Line("failed").text("why", "the system has no thread left (ulimit -u)"));
}

void Side::join() {
  if (std::exchange(working_, false)) ::pthread_join(thread_, nullptr);
}

}  // namespace rdma_rpc::perf
