// The event-loop end of a ring. It polls the peer's ring in every iteration of the loop, and enters JS once
// per batch. When JS returns, it publishes what JS wrote. Therefore no Node-API call is made per message.
// Everything runs on the thread of the loop.
//
//   prepare (before the loop may block)  publish; then spin on or arm the eventfd and let it block
//   poll    (eventfd)                    awake again
//   check   (after the poll)             take what arrived, batch by batch
//
// Spinning continues for kSpinNs after the last traffic. It never spins while the peer last ran on this CPU,
// because the peer could not run then.
#pragma once

#include <node_api.h>
#include <uv.h>

#include <cstdint>

#include "shared.h"

namespace limit {

/// The number of messages that are passed to JS before its answers are published.
inline constexpr std::uint32_t kBatchMax = 16;
inline constexpr std::uint32_t kBatchesPerTurn = 16;  ///< after this number, timers and other handles may run
inline constexpr std::uint64_t kTurnSpinNs = 2'000;
inline constexpr std::uint64_t kSpinNs = 50'000;

/// Words of the control array that JS and the pump share (one thread: plain loads and stores).
enum Control : std::uint32_t { rx_first, rx_count, tx_count, control_words };

class Pump {
 public:
  Pump(napi_env env, Shared* shared, std::uint32_t side, const int (&wake)[2], bool adaptive);
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  /// `on_batch` is called without arguments; the control array contains the slots that have arrived. Returns
  /// false if the loop refused a handle.
  bool start(napi_value on_batch);
  /// Lets the loop end. The pump itself stays for the life of the process, because JS may still read its
  /// control words.
  void close();
  std::uint32_t* control() { return control_; }

 private:
  void before_poll();
  void after_poll();
  void woken();
  void publish();
  bool take_batch();  ///< returns false when nothing has arrived
  bool spin();        ///< waits a little; returns true when something has arrived
  std::uint32_t available() const;
  bool peer_here() const;
  void note_cpu();

  napi_env env_;
  napi_ref on_batch_ = nullptr;
  napi_async_context context_ = nullptr;
  Side& mine_;
  Side& peer_;
  int own_wake_, peer_wake_;
  bool adaptive_;
  std::uint32_t taken_ = 0;           ///< number of slots taken from the peer's ring
  std::uint32_t published_ = 0;       ///< number of slots published in this side's ring
  std::uint64_t quiet_since_ns_ = 0;  ///< 0 when there was traffic since the clock was last read
  std::uint32_t control_[control_words] = {};

  uv_idle_t idle_{};
  uv_prepare_t prepare_{};
  uv_check_t check_{};
  uv_poll_t poll_{};
};

}  // namespace limit
