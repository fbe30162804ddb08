// Runs two threads in turns, in every order of their steps. A step is a load, a store, a fence or a copy of
// shared memory (words.h), or a stall point. Between two steps of one thread, the other thread may execute
// any number of steps. explore() runs a scenario again and again, each time with another choice at one point,
// until all choices within the limits have been made. The limits are the number of switches away from a
// thread that could continue, and the number of loads that return an old value. This file is used by the
// tests of this folder.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "model/memory.h"

namespace rdma_rpc::fabric::model {

struct Limits {
  std::size_t switches = 3;
  std::size_t old_values = 1;
};

struct Choice {
  std::size_t made, options;
};

/// One execution. The first choices of the execution are given. From then on, the execution takes the first
/// alternative of each choice.
class Execution {
 public:
  Execution(const Limits& limits, std::vector<Choice> path) : path_(std::move(path)), left_(limits) {}

  /// Runs both threads to their ends.
  void threads(const std::function<void()>& first, const std::function<void()>& second);

  // The following functions are called by the functions of the threads.
  /// Pauses the calling thread until the other thread has stored something.
  void pause();
  /// Sleeps until `wakes()` is true, as a result of an action of the other thread.
  void sleep_until(const std::function<bool()>& wakes);
  /// Reports that the application's own bytes are read or written.
  void touch(const void* at, std::size_t bytes, bool write);
  void expect(bool holds, const char* otherwise) {
    if (!holds) fail(otherwise);
  }
  /// Returns true after an error has been reported. Every loop must then end.
  bool over() const { return !failure_.empty(); }

  const std::string& failure() const { return failure_; }
  const std::vector<Choice>& path() const { return path_; }
  /// Returns the last steps, for the analysis of a failure.
  std::string trace() const;

  // The following functions are called by words.h, on a thread of this run.
  std::uint64_t load(const void* word, std::size_t bytes, std::memory_order order);
  void store(void* word, std::size_t bytes, std::uint64_t value, std::memory_order order);
  std::uint64_t update(void* word, std::size_t bytes, std::uint64_t keep, std::uint64_t set,
                       std::memory_order order);
  void fence(std::memory_order order);
  void copy(void* to, const void* from, std::size_t bytes);
  void step(const char* what);

 private:
  struct Thread {
    bool finished = false, paused = false;
    std::uint64_t paused_at = 0;  ///< value of stores_ at that time
    std::function<bool()> wakes;
  };
  std::size_t other() const { return 1 - running_; }
  bool can_go_on(std::size_t thread);
  std::size_t choose(std::size_t options);
  void fail(const std::string& why);
  /// Stops the running thread until the other thread has acted.
  void wait();
  void switch_to(std::size_t thread);
  void finish();
  void body(std::size_t number, const std::function<void()>& run);

  std::vector<Choice> path_;
  std::size_t at_ = 0;
  Limits left_;
  Memory memory_;
  Thread threads_[kThreadsMax];
  std::size_t running_ = 0;
  std::uint64_t stores_ = 0, steps_ = 0, since_store_ = 0;
  std::string failure_;
  std::vector<std::string> log_;
  std::mutex lock_;
  std::condition_variable turn_;
};

struct Explored {
  std::uint64_t runs = 0;
  std::string failure;  ///< failure of the run that failed; empty when none failed
  std::string trace;
};
/// `scenario` creates all objects anew, calls threads(), and checks the result with expect().
Explored explore(const Limits& limits, const std::function<void(Execution&)>& scenario);

}  // namespace rdma_rpc::fabric::model
