// One side of a test, as cli/perf/program.ts asks for it line by line. Lines are taken on the main thread;
// connecting and steps run on a thread of their own, so that what stops them can be read meanwhile.
#pragma once

#include <pthread.h>

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "perf/pair.h"
#include "perf/program/words.h"

namespace rdma_rpc::perf {

/// What is said to the command, by both threads.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}
  /// The line, and bytes that come behind it. Of one that is gone nobody is told: there is nobody else.
  void say(const Line& line, std::span<const std::byte> behind = {});

 private:
  bool write_all(std::span<const std::byte> bytes);
  const int fd_;
  std::mutex mutex_;
};

/// Changes with the lines: a program of another version is refused.
inline constexpr std::uint64_t kLines = 1;

class Side {
 public:
  explicit Side(Output* output) : output_(output) {}
  /// Stops what is under way, and waits for that.
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void take(const Words& asked);

 private:
  void open(const Words& asked);
  void connect(const Words& asked);
  void prepare(const Words& asked);
  void run(const Words& asked);
  void check(const Words& asked);
  /// On a thread of its own; says so where the system has none left.
  void start(std::function<void()> work);
  void join();

  Output* const output_;
  std::unique_ptr<Pair> pair_;
  std::function<void()> work_;
  pthread_t thread_{};
  bool working_ = false;
};

}  // namespace rdma_rpc::perf
