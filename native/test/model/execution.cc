// See execution.h. Only the scheduled thread accesses the state. That thread hands over control under the
// lock.
#include "model/execution.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <thread>

#include "model/words.h"

namespace rdma_rpc::fabric::model {
namespace {

/// Every scenario takes fewer steps than this. A longer run loops endlessly.
constexpr std::uint64_t kStepsMax = 20'000;
/// Limit of steps of one thread without a store. At this number, the thread waits for the other one in a loop
/// of its own.
constexpr std::uint64_t kSpinsMax = 50;
constexpr std::size_t kLogged = 60;
constexpr std::uint64_t kRunsMax = 1'000'000;

thread_local Execution* current = nullptr;

const char* name_of(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_acquire:
    case std::memory_order_consume:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    default:
      return "seq_cst";
  }
}

}  // namespace

std::uint64_t load(const void* word, std::size_t bytes, std::memory_order order) {
  if (current != nullptr) return current->load(word, bytes, order);
  std::uint64_t value = 0;
  std::memcpy(&value, word, bytes);
  return value;
}
void store(void* word, std::size_t bytes, std::uint64_t value, std::memory_order order) {
  if (current != nullptr) return current->store(word, bytes, value, order);
  std::memcpy(word, &value, bytes);
}
std::uint64_t update(void* word, std::size_t bytes, std::uint64_t keep, std::uint64_t set,
                     std::memory_order order) {
  if (current != nullptr) return current->update(word, bytes, keep, set, order);
  std::uint64_t value = 0;
  std::memcpy(&value, word, bytes);
  const std::uint64_t changed = (value & keep) | set;
  std::memcpy(word, &changed, bytes);
  return value;
}
void fence(std::memory_order order) {
  if (current != nullptr) current->fence(order);
}
void step() {
  if (current != nullptr) current->step("system call");
}
void copy(void* to, const void* from, std::size_t bytes) {
  if (current != nullptr) return current->copy(to, from, bytes);
  std::memcpy(to, from, bytes);
}

std::size_t Execution::choose(std::size_t options) {
  if (options == 1) return 0;
  if (at_ == path_.size()) path_.push_back({0, options});
  const Choice& choice = path_[at_++];
  if (choice.options != options) {
    fail("the same choices have led elsewhere: this scenario depends on something else");
    return 0;
  }
  return choice.made;
}

void Execution::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}

bool Execution::can_go_on(std::size_t number) {
  const Thread& thread = threads_[number];
  if (thread.finished) return false;
  if (over()) return true;
  if (thread.wakes) return thread.wakes();
  return !thread.paused || thread.paused_at != stores_;
}

void Execution::switch_to(std::size_t thread) {
  std::unique_lock held(lock_);
  const std::size_t self = running_;
  since_store_ = 0;
  running_ = thread;
  turn_.notify_all();
  turn_.wait(held, [&] { return running_ == self; });
}

void Execution::step(const char* what) {
  if (over()) return;
  char line[96];
  std::snprintf(line, sizeof line, "%zu: %s", running_, what);
  if (log_.size() == kLogged) log_.erase(log_.begin());
  log_.emplace_back(line);
  if (++steps_ > kStepsMax) return fail("it does not end");
  if (++since_store_ > kSpinsMax && can_go_on(other())) {
    memory_.catch_up(running_);
    return switch_to(other());
  }
  if (left_.switches == 0 || !can_go_on(other())) return;
  if (choose(2) == 0) return;
  --left_.switches;
  switch_to(other());
}

void Execution::wait() {
  while (!can_go_on(running_)) {
    if (!can_go_on(other())) return fail("both sides wait for each other for ever: a wake-up was lost");
    switch_to(other());
  }
}

void Execution::pause() {
  if (over() || memory_.catch_up(running_)) return;
  Thread& self = threads_[running_];
  self.paused = true;
  self.paused_at = stores_;
  wait();
  self.paused = false;
  memory_.catch_up(running_);
}

void Execution::sleep_until(const std::function<bool()>& wakes) {
  Thread& self = threads_[running_];
  self.wakes = wakes;
  step("sleeps");
  wait();
  self.wakes = nullptr;
}

void Execution::touch(const void* at, std::size_t bytes, bool write) {
  step(write ? "writes bytes" : "reads bytes");
  if (write) ++stores_;
  if (const std::string wrong = memory_.touch(running_, at, bytes, write); !wrong.empty()) fail(wrong);
}

std::uint64_t Execution::load(const void* word, std::size_t bytes, std::memory_order order) {
  char what[80];
  std::snprintf(what, sizeof what, "load %s of %p", name_of(order), word);
  step(what);
  return memory_.load(running_, word, bytes, order, [this](std::size_t options) {
    if (over() || left_.old_values == 0) return std::size_t{0};
    const std::size_t chosen = choose(options);
    if (chosen != 0) --left_.old_values;
    return chosen;
  });
}

void Execution::store(void* word, std::size_t bytes, std::uint64_t value, std::memory_order order) {
  char what[80];
  std::snprintf(what, sizeof what, "store %s of %" PRIx64 " to %p", name_of(order), value, word);
  step(what);
  ++stores_;
  since_store_ = 0;
  memory_.store(running_, word, bytes, value, order);
}

std::uint64_t Execution::update(void* word, std::size_t bytes, std::uint64_t keep, std::uint64_t set,
                                std::memory_order order) {
  char what[80];
  std::snprintf(what, sizeof what, "update %s of %p with %" PRIx64, name_of(order), word, set);
  step(what);
  ++stores_;
  since_store_ = 0;
  return memory_.update(running_, word, bytes, keep, set, order);
}

void Execution::fence(std::memory_order order) {
  char what[80];
  std::snprintf(what, sizeof what, "fence %s", name_of(order));
  step(what);
  memory_.fence(running_, order);
}

void Execution::copy(void* to, const void* from, std::size_t bytes) {
  touch(from, bytes, false);
  touch(to, bytes, true);
  std::memcpy(to, from, bytes);
  memory_.overwritten(running_, to, bytes);
}

void Execution::finish() {
  const std::unique_lock held(lock_);
  threads_[running_].finished = true;
  ++stores_;  // the other thread may wait for the end of this one
  running_ = other();
  turn_.notify_all();
}

void Execution::body(std::size_t number, const std::function<void()>& run) {
  {
    std::unique_lock held(lock_);
    turn_.wait(held, [&] { return running_ == number; });
  }
  current = this;
  run();
  current = nullptr;
  finish();
}

void Execution::threads(const std::function<void()>& first, const std::function<void()>& second) {
  std::thread one([&] { body(0, first); }), two([&] { body(1, second); });
  one.join();
  two.join();
}

std::string Execution::trace() const {
  std::string lines;
  for (const std::string& line : log_) lines += line + "\n";
  return lines;
}

Explored explore(const Limits& limits, const std::function<void(Execution&)>& scenario) {
  Explored explored;
  std::vector<Choice> path;
  do {
    Execution run(limits, path);
    scenario(run);
    ++explored.runs;
    if (run.over()) {
      explored.failure = run.failure();
      explored.trace = run.trace();
      return explored;
    }
    path = run.path();
    while (!path.empty() && path.back().made + 1 == path.back().options) path.pop_back();
    if (!path.empty()) ++path.back().made;
  } while (!path.empty() && explored.runs < kRunsMax);
  return explored;
}

}  // namespace rdma_rpc::fabric::model
