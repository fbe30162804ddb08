// All sessions of one JS thread on one device: the shared arrays, the completion queue, arena, registration
// cache and send slots, and the turn that moves everything. The binding gives it time and hands its events to
// JS; the native tests do the same without JS. One thread owns a context for its whole life; nothing here is
// shared between threads.
//
// A turn:  progress() → (events? JS reads them, submits) → finish_turn()
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.h"
#include "memory/arena.h"
#include "memory/mr_cache.h"
#include "session/session.h"
#include "telemetry/counters_page.h"

namespace rdma_rpc::session {

struct ContextOptions {
  std::uint32_t slot_bytes = 8192;
  std::uint32_t send_slots = 256;
  /// Messages of so many bytes at most go in segments; without: as the device would have it.
  std::optional<std::uint32_t> segmented_bytes{};
  memory::ArenaOptions arena;
  memory::MrCacheOptions mr_cache;
  Exposure exposure = Exposure::automatic;
  /// Other processes of this user may read the counters page.
  bool publish_counters = false;
  /// READs under way, of all sessions.
  std::uint64_t read_bytes_max = kReadBytesMax;
  /// Where sequence numbers, generations and tokens begin: tests begin just below the wrap.
  std::uint32_t counters_start = 0;
  /// So many sessions have receives of their own before any share them: none, in tests of what shares.
  std::uint32_t shared_from = kSharedFrom;
};

class Context {
 public:
  /// Null, with the reason in `error`, when the device refuses a resource. The device may be shared with
  /// other contexts of this thread.
  static std::unique_ptr<Context> open(std::shared_ptr<fabric::Device> device, const ContextOptions& options,
                                       std::string* error);
  ~Context();

  // --- shared with JS
  std::int32_t* control() { return control_.data(); }
  std::int32_t* submissions() { return submissions_.data(); }
  std::int32_t* events() { return event_words_.data(); }
  std::int32_t* free_slots() { return free_slots_.data(); }
  std::int32_t* session_slots() { return session_slots_.data(); }
  std::size_t session_slots_words() const { return session_slots_.size(); }
  std::size_t control_words() const { return control_.size(); }
  std::size_t submission_words() const { return submissions_.size(); }
  std::size_t event_words() const { return event_words_.size(); }
  SendSlots& slots() { return *slots_; }
  /// Messages that came in segments, by the offsets of their events.
  std::byte* whole_messages() { return shared_->whole.data(); }
  /// Short messages, where an event has a receive slot from boundary::kBriefSlots on.
  std::byte* brief_messages() { return shared_->brief.data(); }
  std::uint32_t brief_messages_free() const { return shared_->brief.free(); }
  /// How many more of the former may come in now.
  std::uint32_t whole_messages_free() const { return shared_->whole.free(); }

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
  bool has_events() const { return !events_->empty(); }
  /// True while somebody must call progress() every few milliseconds although no completion comes.
  bool wants_timer() const { return timeouts_pending_; }
  /// True while somebody must call it every kHoldCheckNs.
  bool wants_slow_timer() const { return holds_; }

  /// Responses of this method will have about so many bytes: its next request brings memory for them.
  void expect_response(std::uint32_t method, std::uint32_t bytes) { predictor_.expect(method, bytes); }

  // --- sessions; numbers are never reused for another session while anybody may still hold one
  std::int64_t create_session(const SessionOptions& options, std::string* error);  ///< -1: refused
  Session* find(std::uint32_t number);
  /// Why the system refused what the last call that found no memory wanted; empty: limits of ours did.
  const std::string& refusal() const { return shared_->refusal; }
  void forget_refusal() { shared_->refusal.clear(); }
  /// For JS, which allocates by itself.
  memory::BlockId alloc(std::size_t bytes, memory::Use use, memory::OwnerId owner = memory::kNobody);
  std::uint32_t session_count() const { return session_count_; }
  /// Called right before a session's receive slab goes away: views of it must be dropped now.
  void on_session_gone(std::function<void(std::uint32_t number)> callback) {
    on_session_gone_ = std::move(callback);
  }

  /// After a device_gone event, when the last session is down: closes the device and all that is made on it.
  /// Only blocks that are leased stay, as memory. No turn may follow, and no session be made.
  void leave_device();
  bool has_device() const { return device_ != nullptr; }

  void emit_evicted(std::uint64_t key);
  fabric::Device& device() { return *device_; }
  fabric::CompletionQueue& cq() { return *cq_; }
  memory::Arena& arena() { return *arena_; }
  memory::MrCache& mr_cache() { return *mr_cache_; }
  const Stats& stats() const { return stats_; }
  telemetry::CountersPage& page() { return *page_; }
  /// Writes what the page says of sessions.
  void report_sessions();
  /// The page calls the other side of this session so; `security`: as SessionRow has it.
  void name_session(std::uint32_t number, std::string_view peer, std::uint32_t security);
  /// Empty: it has no name yet.
  std::string_view name_of_session(std::uint32_t number) const;
  const Flow& flow() const { return shared_->flow; }
  /// Sessions that turns have looked at, counting on: as many as had something to do.
  std::uint64_t sessions_looked_at() const { return looked_at_; }
  /// Numbers in all sets, those of sessions that have ended included. For tests.
  std::size_t set_entries() const {
    const SessionSets& sets = shared_->sets;
    return sets.touched.numbers().size() + sets.timed.numbers().size() + sets.holding.numbers().size() +
           sets.connecting.numbers().size();
  }
  /// Between turns: the first session that has something to do and that no turn would look at, and why.
  /// Empty: all is well. For tests, see SessionSets.
  std::string forgotten() const;
  /// What peers have been granted of the shared receives is more than is posted: a mistake. For tests.
  std::string overdrawn() const;
  const SharedReceives& shared_receives() const { return shared_->shared_receives; }
  /// Peers may go on writing to memory of large messages that they have once had a right to. (What small ones
  /// come in is read from a copy.)
  bool peers_keep_access() const {
    return device_->capabilities().peers_keep_access && shared_->exposure != Exposure::staging;
  }
  std::size_t memory_waiters() const { return shared_ ? shared_->memory_waiters.size() : 0; }
  /// Calls wait for arena memory, here or in JS.
  bool awaits_memory() const { return memory_waiters() != 0 || control_[boundary::ctl::want_memory] != 0; }

 private:
  /// No place, and no row.
  static constexpr std::uint32_t kNone = UINT32_MAX;
  Context() { row_places_.fill(kNone); }
  void take_row(std::uint32_t place);
  void write_name(std::uint32_t place);
  void forget_session(std::uint32_t place);
  void consume_submissions();
  void retire_events();
  void retry_memory();
  void tell_memory_free();
  void tell_slots_free();
  void tell_memory_short();
  std::optional<std::uint64_t> refused_since();
  void give_memory_up();
  void check_connecting();
  void check_timeouts();
  void check_held();
  void keep(Session& session);
  /// Whoever is at the place of that number, without a look at it.
  const Session* at_place(std::uint32_t number) const;
  auto finder() {
    return [this](std::uint32_t number) { return find(number); };
  }
  void expect_submissions(std::int32_t count);
  void expect_completions(std::size_t count);
  std::size_t poll(std::size_t most);
  void drain_completions();
  void deliver_fetched(bool queue_was_empty);
  bool move_bulk();

  // Destroyed from the bottom up: sessions before what they use, everything before the device.
  std::shared_ptr<fabric::Device> device_;
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::unique_ptr<memory::Arena> arena_;
  std::unique_ptr<memory::MrCache> mr_cache_;
  std::unique_ptr<WindowPool> windows_;
  std::vector<std::int32_t> control_, submissions_, event_words_, free_slots_, session_slots_;
  std::unique_ptr<SendSlots> slots_;
  std::unique_ptr<EventQueue> events_;
  ResponsePredictor predictor_;
  Stats stats_;
  std::unique_ptr<telemetry::CountersPage> page_;
  std::unique_ptr<Shared> shared_;
  std::function<void(std::uint32_t)> on_session_gone_;

  /// Of one poll. Not of progress() itself: to clear it cost as much as a poll that finds nothing.
  std::array<fabric::Wc, kEventsMax> completions_;

  struct Place {
    std::unique_ptr<Session> session;
    std::uint32_t epoch = 0;
    std::uint32_t row = kNone;  ///< of the counters page
    /// For the page, as soon as there is a row.
    std::uint32_t security = 0;
    std::string peer;
  };
  std::vector<Place> places_;
  /// Of those, without a session, the one that has been free for longest first: its numbers are forgotten
  /// everywhere.
  std::deque<std::uint32_t> free_places_;
  /// Who has each row of the counters page. Not the first places: where there have been many sessions, the
  /// few of now may all be at later ones.
  std::array<std::uint32_t, telemetry::kSessionRows> row_places_;
  std::uint32_t session_count_ = 0;
  std::uint64_t looked_at_ = 0;
  std::uint64_t checked_ns_ = 0;            ///< when those that wait for memory were last looked at
  std::uint64_t turn_ns_ = 0;               ///< when the time was last given
  std::uint64_t held_ns_ = 0;               ///< when check_held() has looked last
  std::uint64_t memory_changes_ = 0;        ///< releases and registrations, when it was last looked for JS
  std::uint64_t told_refusals_ = 0;         ///< of the arena, when JS was last told that memory came free
  std::uint64_t checked_refusals_ = 0;      ///< the same at the last check_held()
  std::uint64_t short_since_ns_ = 0;        ///< on the awake clock; 0: memory is not short
  std::vector<std::uint32_t> passed_over_;  ///< sessions, in one look at those that wait for memory
  bool told_short_ = false, told_of_device_ = false;
  bool timeouts_pending_ = false, holds_ = false, in_callback_ = false, unfinished_ = false;
};

}  // namespace rdma_rpc::session
