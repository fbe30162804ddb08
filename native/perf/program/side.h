// Runs one side of a test, which cli/perf/program.ts controls line by line. The main thread reads lines.
// Connecting and steps run on a separate thread, so that an instruction to stop can be read in the meantime.
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

/// Writes output to the command, from both threads.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}
  /// Writes the line, followed by bytes. When the command has ended, the error is ignored, because no reader
  /// is left.
  void say(const Line& line, std::span<const std::byte> behind = {});

 private:
  bool write_all(std::span<const std::byte> bytes);
  const int fd_;
  std::mutex mutex_;
};

/// Version of the instructions. A program of another version is refused.
inline constexpr std::uint64_t kLines = 2;

class Side {
 public:
  explicit Side(Output* output) : output_(output) {}
  /// Stops the current step, and waits until the step has ended.
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
  /// Runs `work` on a thread of its own. Reports an error when the system has no thread left.
  void start(std::function<void()> work);
  void join();

  Output* const output_;
  std::unique_ptr<Pair> pair_;
  std::function<void()> work_;
  pthread_t thread_{};
  bool working_ = false;
};

}  // namespace rdma_rpc::perf
