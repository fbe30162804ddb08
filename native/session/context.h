// A context has all sessions of one JS thread on one device, the resources that they share (shared.h), and
// the turn that drives them. A turn is one pass through progress() and finish_turn(); there is one per
// iteration of the event loop. The binding supplies the time and passes events to JS; the native tests do the
// same without JS. One thread owns a context for its whole life; nothing here is shared between threads.
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
  /// Returns null, with the reason in `error`, when the device refuses a resource. The device may be shared
  /// with other contexts of this thread.
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
  /// Returns the memory of messages that came in segments. The offsets in events refer to this memory.
  std::byte* reassembled_messages() { return shared_.reassembled_messages.data(); }
  /// Returns the memory of short messages. An event refers to this memory when its receive slot is
  /// boundary::kShortMessageSlots or higher.
  std::byte* short_messages() { return shared_.short_messages.data(); }
  std::uint32_t short_messages_free() const { return shared_.short_messages.free(); }
  /// Returns the number of free entries for reassembled messages.
  std::uint32_t reassembled_messages_free() const { return shared_.reassembled_messages.free(); }

  // --- the turn
  /// Polls completions and turns them into events. Returns the number of events in the array; when it is not
  /// 0, the caller must enter JS.
  std::uint32_t progress(std::uint64_t now_ns);
  /// Locks the events array before JS reads it; until finish_turn(), new events are queued.
  void begin_callback();
  /// Reposts receives and sends submissions after JS has handled the events. Returns true when progress()
  /// must be called again at once.
  bool finish_turn();
  /// Sets the time before a request that JS makes outside of a turn, because the time of the last turn may be
  /// long past.
  void set_time(std::uint64_t now_ns);
  /// Sends what JS has staged. May be called at any time.
  void flush();
  /// Returns true when progress() has done work that finish_turn() must continue, although it has created no
  /// event.
  bool unfinished() const { return unfinished_; }
  /// Must be called when JS has requested something outside of a turn; the next turn continues that work.
  void touch() { unfinished_ = true; }
  /// Returns true when the next progress() has events to return without polling.
  bool has_events() const { return !shared_.events.empty(); }
  /// Returns true while progress() must be called every few milliseconds although no completion arrives.
  bool wants_timer() const { return active_.timeouts_pending(); }
  /// Returns true while progress() must be called every kHoldCheckNs.
  bool wants_slow_timer() const { return active_.holds(); }

  /// Announces the size of this method's responses: the next request of the method brings a reply buffer of
  /// that size.
  void expect_response(std::uint32_t method, std::uint32_t bytes) { shared_.predictor.expect(method, bytes); }

  // --- sessions (the number of a session is not reused while other code may still have it)
  /// Returns -1 when the session is refused.
  std::int64_t create_session(const SessionOptions& options, std::string* error);
  Session* find(std::uint32_t number) { return sessions_.find(number); }
  /// Returns the reason why the operating system refused memory to the last call that failed for lack of
  /// memory; "" when a limit of this library was the cause.
  const std::string& refusal() const { return shared_.refusal; }
  void forget_refusal() { shared_.refusal.clear(); }
  /// Allocates a block for JS.
  memory::BlockId alloc(std::size_t bytes, memory::Use use, memory::OwnerId owner = memory::kNobody);
  std::uint32_t session_count() const { return sessions_.size(); }
  /// Sets the function that is called right before a session's receive slab is freed: the function must drop
  /// all views of the slab.
  void on_session_gone(std::function<void(std::uint32_t number)> callback) {
    on_session_gone_ = std::move(callback);
  }

  /// Closes the device and everything that was created on it, after a device_gone event when the last session
  /// is down. Leased blocks stay as plain memory. After this call no turn may run and no session may be
  /// created.
  void leave_device();
  bool has_device() const { return shared_.device != nullptr; }

  fabric::Device& device() { return *shared_.device; }
  fabric::CompletionQueue& cq() { return *shared_.cq; }
  memory::Arena& arena() { return shared_.arena; }
  memory::MrCache& mr_cache() { return shared_.mr_cache; }
  const Stats& stats() const { return shared_.stats; }
  telemetry::CountersPage& page() { return *shared_.page; }
  /// Writes the sessions to the counters page.
  void report_sessions() { rows_.report(sessions_); }
  /// Sets the name of the session's peer on the counters page. `security` is the value for SessionRow.
  void name_session(std::uint32_t number, std::string_view peer, std::uint32_t security);
  /// Returns the name of the session's peer; "" until a name is set.
  std::string_view name_of_session(std::uint32_t number) const {
    return rows_.name_of(SessionTable::index_of(number));
  }
  const Flow& flow() const { return shared_.flow; }
  /// See ActiveSessions::looked_at().
  std::uint64_t sessions_looked_at() const { return active_.looked_at(); }
  /// Returns the number of entries in all sets, including those of ended sessions. This is for tests.
  std::size_t set_entries() const { return shared_.sets.entries(); }
  /// See ActiveSessions::forgotten(). This is for tests.
  std::string forgotten() const { return active_.forgotten(); }
  /// Returns an error text when peers have been granted more of the shared receives than are posted. This is
  /// for tests.
  std::string overdrawn() const;
  const SharedReceives& shared_receives() const { return shared_.shared_receives; }
  /// Returns true when peers keep write access to memory of large messages after the calls that allowed the
  /// access. (Small messages are read from a copy.)
  bool peers_keep_access() const {
    return shared_.device->capabilities().peers_keep_access && shared_.exposure != Exposure::staging;
  }
  std::size_t memory_waiters() const { return shared_.memory_waiters.size(); }
  /// Returns true while calls wait for arena memory, here or in JS.
  bool awaits_memory() const {
    return memory_waiters() != 0 || shared_.arrays.control[boundary::ctl::want_memory] != 0;
  }

 private:
  Context(Resources resources, const ContextOptions& options);
  void consume_submissions();
  void retire_events();
  void notify_slots_free();
  std::size_t poll(std::size_t most);
  void drain_completions();
  void deliver_fetched(bool queue_was_empty);
  bool move_bulk();
  void check_held();

  // Members are destroyed in reverse order, so that sessions are destroyed before the objects that they use.
  Shared shared_;
  SessionTable sessions_;
  SessionRows rows_;
  ActiveSessions active_;
  MemoryShortage shortage_;
  std::function<void(std::uint32_t)> on_session_gone_;

  /// The completions of one poll. The array is a member, because clearing a local array in each progress()
  /// would cost as much as a poll that finds nothing.
  std::array<fabric::Wc, kEventsMax> completions_;
  std::uint64_t turn_ns_ = 0;  ///< the time that was last given to progress()
  bool notified_of_device_ = false, in_callback_ = false, unfinished_ = false;
};

}  // namespace rdma_rpc::session
