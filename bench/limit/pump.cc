// The pump's iterations (see pump.h).
#include "pump.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace limit {
namespace {

std::uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <typename Handle>
Pump* owner(Handle* handle) {
  return static_cast<Pump*>(handle->data);
}

}  // namespace

Pump::Pump(napi_env env, Shared* shared, std::uint32_t side, const int (&wake)[2], bool adaptive)
    : env_(env),
      mine_(shared->side[side]),
      peer_(shared->side[1 - side]),
      own_wake_(wake[side]),
      peer_wake_(wake[1 - side]),
      adaptive_(adaptive) {}

bool Pump::start(napi_value on_batch) {
  napi_value name;
  uv_loop_t* loop;
  if (napi_create_reference(env_, on_batch, 1, &on_batch_) != napi_ok) return false;
  if (napi_create_string_utf8(env_, "limit", NAPI_AUTO_LENGTH, &name) != napi_ok) return false;
  if (napi_async_init(env_, nullptr, name, &context_) != napi_ok) return false;
  if (napi_get_uv_event_loop(env_, &loop) != napi_ok) return false;
  if (uv_poll_init(loop, &poll_, own_wake_) != 0) return false;
  uv_idle_init(loop, &idle_);
  uv_prepare_init(loop, &prepare_);
  uv_check_init(loop, &check_);
  idle_.data = prepare_.data = check_.data = poll_.data = this;
  uv_prepare_start(&prepare_, [](uv_prepare_t* h) { owner(h)->before_poll(); });
  uv_check_start(&check_, [](uv_check_t* h) { owner(h)->after_poll(); });
  uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t* h, int, int) { owner(h)->woken(); });
  return true;
}

void Pump::close() {
  uv_close(reinterpret_cast<uv_handle_t*>(&idle_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&prepare_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&check_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), nullptr);
}

std::uint32_t Pump::available() const { return peer_.published.load(std::memory_order_acquire) - taken_; }

bool Pump::peer_here() const {
  return peer_.cpu.load(std::memory_order_relaxed) == mine_.cpu.load(std::memory_order_relaxed);
}

void Pump::note_cpu() {
  const auto cpu = static_cast<std::uint32_t>(sched_getcpu());
  if (mine_.cpu.load(std::memory_order_relaxed) != cpu) mine_.cpu.store(cpu, std::memory_order_relaxed);
}

void Pump::publish() {
  if (control_[tx_count] == published_) return;
  published_ = control_[tx_count];
  mine_.published.store(published_, std::memory_order_seq_cst);
  if (peer_.sleeping.load(std::memory_order_seq_cst) != 0 && peer_.sleeping.exchange(0) != 0) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(peer_wake_, &one, sizeof one);
  }
  quiet_since_ns_ = 0;
}

bool Pump::take_batch() {
  const std::uint32_t count = available();
  if (count == 0) return false;
  control_[rx_first] = taken_;
  control_[rx_count] = count < kBatchMax ? count : kBatchMax;
  napi_handle_scope scope;
  napi_value receiver, function, result;
  napi_open_handle_scope(env_, &scope);
  napi_get_global(env_, &receiver);
  napi_get_reference_value(env_, on_batch_, &function);
  // The callback scope also runs the microtasks, so the answers of async handlers are in the ring when this
  // returns.
  if (napi_make_callback(env_, context_, receiver, function, 0, nullptr, &result) == napi_pending_exception) {
    napi_value error;
    napi_get_and_clear_last_exception(env_, &error);
    napi_fatal_exception(env_, error);
  }
  napi_close_handle_scope(env_, scope);
  taken_ += control_[rx_count];
  quiet_since_ns_ = 0;
  publish();
  return true;
}

void Pump::after_poll() {
  if (mine_.sleeping.load(std::memory_order_relaxed) != 0) mine_.sleeping.store(0, std::memory_order_relaxed);
  note_cpu();
  for (std::uint32_t batches = 0; batches < kBatchesPerTurn;) {
    if (take_batch()) {
      ++batches;
    } else if (!spin()) {
      return;
    }
  }
}

bool Pump::spin() {
  if (!adaptive_ || peer_here()) return false;
  const std::uint64_t start = now_ns();
  if (quiet_since_ns_ == 0) quiet_since_ns_ = start;
  do {
    for (int i = 0; i < 16; ++i) {
      if (available() != 0) return true;
      pause();
    }
  } while (now_ns() - start < kTurnSpinNs);
  return false;
}

void Pump::before_poll() {
  publish();
  const bool stay_awake =
      adaptive_ && !peer_here() && (quiet_since_ns_ == 0 || now_ns() - quiet_since_ns_ <= kSpinNs);
  if (!stay_awake) {
    mine_.sleeping.store(1, std::memory_order_seq_cst);
    // This must come before the check of the ring, because the peer publishes before it checks `sleeping`.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (available() == 0) {
      uv_idle_stop(&idle_);
      return;
    }
  }
  uv_idle_start(&idle_, [](uv_idle_t*) {});
}

void Pump::woken() {
  std::uint64_t count;
  [[maybe_unused]] const auto taken = read(own_wake_, &count, sizeof count);
}

}  // namespace limit
