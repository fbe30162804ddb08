// All sessions of one JS thread on one device, what they share (shared.h), and the turn that moves
// everything. The binding gives it time and hands its events to JS; the native tests do the same without JS.
// One thread owns a context for its whole life; nothing here is shared between threads.
//
// A turn:  progress() → (events? JS reads them, submits) → finish_turn()
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "fabric/fabric.h"
#include "memory/arena.h"
#include "memory/mr_cache.h"
#include "session/active_sessions.h"
#include "session/context_options.h"
#include "session/memory_shortage.h"
#include "session/session_rows.h"
#include "session/session_table.h"
#include "session/shared.h"
#include "telemetry/counters_page.h"

namespace rdma_rpc::session {

class Context {
 public:
  /// Null, with the reason in `error`, when the device refuses a resource. The device may be shared with
  /// other contexts of this thread.
  static std::unique_ptr<Context> open(std::shared_ptr<fabric::Device> device, const ContextOptions& options,
                                       std::string* error);

  // --- shared with JS
  std::int32_t* control() { return shared_.arrays.control.data(); }
  std::int32_t* submissions() { return shared_.arrays.submissions.data(); }
  std::int32_t* events() { return shared_.arrays.events.data(); }
  std::int32_t* free_slots() { return shared_.arrays.free_slots.data(); }
  std::int32_t* session_slots() { return shared_.arrays.session_slots.data(); }
  std::size_t session_slots_words() const { return shared_.arrays.session_slots.size(); }
  std::size_t control_words() const { return shared_.arrays.control.size(); }
  std::size_t submission_words() const { return shared_.arrays.submissions.size(); }
  std::size_t event_words() const { return shared_.arrays.events.size(); }
  SendSlots& slots() { return shared_.slots; }
  /// Messages that came in segments, by the offsets of their events.
  std::byte* reassembled_messages() { return shared_.reassembled_messages.data(); }
  /// Short messages, where an event has a receive slot from boundary::kShortMessageSlots on.
  std::byte* short_messages() { return shared_.short_messages.data(); }
  std::uint32_t short_messages_free() const { return shared_.short_messages.free(); }
  /// How many more of the former may come in now.
  std::uint32_t reassembled_messages_free() const { return shared_.reassembled_messages.free(); }

  // --- the turn
  /// Polls completions into events. Returns the number of events in the array: enter JS when it is not 0.
  std::uint32_t progress(std::uint64_t now_ns);
  /// The events array is being read: what comes up meanwhile waits.
  void begin_callback();
  /// JS is done with the events (if there were any): receives are posted again, submissions sent. True: call
  /// progress() again at once.
  bool finish_turn();
  /// The time is this: for what JS asks for outside of a turn, whose own time may be long past.
  void set_time(std::uint64_t now_ns);
  /// Sends what JS has staged, at any time.
  void flush();
  /// True when progress() has done something that finish_turn() must carry on, although it made no event.
  bool unfinished() const { return unfinished_; }
  /// JS has asked for something outside of a turn: the next one carries it on.
  void touch() { unfinished_ = true; }
  /// True while progress() would find something without waiting.
  bool has_events() const { return !shared_.events.empty(); }
  /// True while somebody must call progress() every few milliseconds although no completion comes.
  bool wants_timer() const { return active_.timeouts_pending(); }
  /// True while somebody must call it every kHoldCheckNs.
  bool wants_slow_timer() const { return active_.holds(); }

  /// Responses of this method will have about so many bytes: its next request brings memory for them.
  void expect_response(std::uint32_t method, std::uint32_t bytes) { shared_.predictor.expect(method, bytes); }

  // --- sessions; numbers are never reused for another session while anybody may still hold one
  std::int64_t create_session(const SessionOptions& options, std::string* error);  ///< -1: refused
  Session* find(std::uint32_t number) { return sessions_.find(number); }
  /// Why the system refused what the last call that found no memory wanted; empty: limits of ours did.
  const std::string& refusal() const { return shared_.refusal; }
  void forget_refusal() { shared_.refusal.clear(); }
  /// For JS, which allocates by itself.
  memory::BlockId alloc(std::size_t bytes, memory::Use use, memory::OwnerId owner = memory::kNobody);
  std::uint32_t session_count() const { return sessions_.size(); }
  /// Called right before a session's receive slab goes away: views of it must be dropped now.
  void on_session_gone(std::function<void(std::uint32_t number)> callback) {
    on_session_gone_ = std::move(callback);
  }

  /// After a device_gone event, when the last session is down: closes the device and all that is made on it.
  /// Only blocks that are leased stay, as memory. No turn may follow, and no session be made.
  void leave_device();
  bool has_device() const { return shared_.device != nullptr; }

  fabric::Device& device() { return *shared_.device; }
  fabric::CompletionQueue& cq() { return *shared_.cq; }
  memory::Arena& arena() { return shared_.arena; }
  memory::MrCache& mr_cache() { return shared_.mr_cache; }
  const Stats& stats() const { return shared_.stats; }
  telemetry::CountersPage& page() { return *shared_.page; }
  /// Writes what the page says of sessions.
  void report_sessions() { rows_.report(sessions_); }
  /// The page calls the other side of this session so; `security`: as SessionRow has it.
  void name_session(std::uint32_t number, std::string_view peer, std::uint32_t security);
  /// Empty: it has no name yet.
  std::string_view name_of_session(std::uint32_t number) const {
    return rows_.name_of(SessionTable::index_of(number));
  }
  const Flow& flow() const { return shared_.flow; }
  /// Sessions that turns have looked at, counting on: as many as had something to do.
  std::uint64_t sessions_looked_at() const { return active_.looked_at(); }
  /// Numbers in all sets, those of sessions that have ended included. For tests.
  std::size_t set_entries() const { return shared_.sets.entries(); }
  /// See ActiveSessions. For tests.
  std::string forgotten() const { return active_.forgotten(); }
  /// What peers have been granted of the shared receives is more than is posted: a mistake. For tests.
  std::string overdrawn() const;
  const SharedReceives& shared_receives() const { return shared_.shared_receives; }
  /// Peers may go on writing to memory of large messages that they have once had a right to. (What small ones
  /// come in is read from a copy.)
  bool peers_keep_access() const {
    return shared_.device->capabilities().peers_keep_access && shared_.exposure != Exposure::staging;
  }
  std::size_t memory_waiters() const { return shared_.memory_waiters.size(); }
  /// Calls wait for arena memory, here or in JS.
  bool awaits_memory() const {
    return memory_waiters() != 0 || shared_.arrays.control[boundary::ctl::want_memory] != 0;
  }

 private:
  Context(Resources resources, const ContextOptions& options);
  void consume_submissions();
  void retire_events();
  void tell_slots_free();
  std::size_t poll(std::size_t most);
  void drain_completions();
  void deliver_fetched(bool queue_was_empty);
  bool move_bulk();
  void check_held();

  // Destroyed from the bottom up: sessions before what they use.
  Shared shared_;
  SessionTable sessions_;
  SessionRows rows_;
  ActiveSessions active_;
  MemoryShortage shortage_;
  std::function<void(std::uint32_t)> on_session_gone_;

  /// Of one poll. Not of progress() itself: to clear it cost as much as a poll that finds nothing.
  std::array<fabric::Wc, kEventsMax> completions_;
  std::uint64_t turn_ns_ = 0;  ///< when the time was last given
  bool told_of_device_ = false, in_callback_ = false, unfinished_ = false;
};

}  // namespace rdma_rpc::session
