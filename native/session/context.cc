// See context.h.
#include "session/context.h"

#include <algorithm>
#include <utility>

#include "session/batch_prefetch.h"

namespace rdma_rpc::session {

namespace ctl = boundary::ctl;
namespace ev = boundary::ev;
namespace sub = boundary::sub;
using boundary::Event;
using boundary::EvKind;

namespace {
constexpr std::uint32_t kCqEntries = 4096;

/// Returns the options with every default filled in.
ContextOptions with_defaults(ContextOptions options, const fabric::Capabilities& can) {
  if (options.exposure == Exposure::automatic)
    options.exposure = can.windows ? Exposure::window : Exposure::staging;
  if (!options.segmented_bytes) options.segmented_bytes = can.segmented_bytes;
  // All blocks of a chunk have the same size, so a small arena with few large chunks would run out of other
  // sizes.
  options.arena.chunk_bytes =
      std::min(options.arena.chunk_bytes, options.arena.budget_bytes / kArenaChunksMin);
  if (options.exposure == Exposure::shared) {
    options.arena.remote_access = fabric::access_remote_read | fabric::access_remote_write;
    options.mr_cache.remote_access = fabric::access_remote_read;
  }
  return options;
}

/// Returns the reason why the device does not support these options, or "".
std::string why_refused(const ContextOptions& options, const fabric::Capabilities& can) {
  if (options.exposure == Exposure::window && !can.windows)
    return " has no type-2 memory windows (option exposure: leave it out, or choose staging)";
  if (options.mr_cache.on_demand && can.pins_memory && !can.on_demand)
    return " has no on-demand paging (option registration: leave it out, or choose pinned)";
  const std::string unfit = Session::why_unfit(can);
  return unfit.empty() ? "" : " cannot be used: " + unfit;
}

/// Allocates everything that the device or the system may refuse. Returns "", or why an allocation was
/// refused.
std::string take(const ContextOptions& options, Resources& resources) {
  fabric::Device& device = *resources.device;
  resources.cq = device.create_cq(kCqEntries);
  if (resources.cq == nullptr) return "no completion queue: " + device.refusal();
  const std::uint32_t stride = SendSlots::send_stride_for(options.slot_bytes);
  const std::uint32_t long_slots = SendSlots::long_count_for(*options.segmented_bytes);
  resources.slot_memory =
      device.alloc_memory(SendSlots::bytes_for(options.send_slots, stride, long_slots), "send slots");
  if (resources.slot_memory == nullptr) {
    return "no memory for " + std::to_string(options.send_slots) +
           " send slots (option sendSlots): " + device.refusal();
  }
  std::string why;
  resources.slot_region = device.reg_mr(resources.slot_memory->data(), resources.slot_memory->size(),
                                        fabric::access_local_write, &why);
  if (resources.slot_region == nullptr) return why;
  resources.page = telemetry::CountersPage::open(options.publish_counters);
  return resources.page == nullptr ? "no memory for counters" : "";
}
}  // namespace

std::unique_ptr<Context> Context::open(std::shared_ptr<fabric::Device> device, const ContextOptions& options,
                                       std::string* error) {
  const fabric::Capabilities& can = device->capabilities();
  const ContextOptions chosen = with_defaults(options, can);
  Resources resources{};
  resources.device = std::move(device);
  if (const std::string why = why_refused(chosen, can); !why.empty()) {
    *error = "fabric " + can.name + why;
    return nullptr;
  }
  if (std::string why = take(chosen, resources); !why.empty()) {
    *error = std::move(why);
    return nullptr;
  }
  std::unique_ptr<Context> context(new Context(std::move(resources), chosen));
  if (context->shared_.reassembled_messages.data() == nullptr) {
    *error = "no " + std::to_string(ReassembledMessages::bytes()) +
             " bytes of addresses for messages that come in several SENDs (ulimit -v)";
    return nullptr;
  }
  return context;
}

Context::Context(Resources resources, const ContextOptions& options)
    : shared_(std::move(resources), options),
      rows_(*shared_.page),
      active_(shared_, sessions_),
      shortage_(shared_, sessions_) {}

void Context::leave_device() {
  sessions_.close_all();
  shared_.leave_device();
}

std::int64_t Context::create_session(const SessionOptions& options, std::string* error) {
  const Session* session = sessions_.open(shared_, options, error);
  if (session == nullptr) return -1;
  shared_.sets.reserve(sessions_.capacity());
  rows_.opened(SessionTable::index_of(session->number()));
  shared_.arrays.control[ctl::sessions] = static_cast<std::int32_t>(sessions_.size());
  return session->number();
}

void Context::name_session(std::uint32_t number, std::string_view peer, std::uint32_t security) {
  if (find(number) != nullptr) rows_.name(SessionTable::index_of(number), peer, security);
}

memory::BlockId Context::alloc(std::size_t bytes, memory::Use use, memory::OwnerId owner) {
  const memory::BlockId block = shared_.arena.alloc(bytes, use, owner);
  if (block == memory::kNoBlock) shared_.refusal = shared_.arena.refusal();
  return block;
}

void Context::set_time(std::uint64_t now_ns) {
  shared_.now_ns = now_ns;
  if (now_ns <= turn_ns_) return;  // the time may have been read before JS ran
  shared_.awake_ns += std::min(now_ns - std::exchange(turn_ns_, now_ns), kAwakeStepNs);
}

std::uint32_t Context::progress(std::uint64_t now_ns) {
  set_time(now_ns);
  // Submissions come first, so that a call on a session that is about to end fails before its SESSION_DOWN.
  if (shared_.arrays.control[ctl::staged] != 0) {
    unfinished_ = true;
    consume_submissions();
  }
  if (shared_.memory_waiters.size() != 0) {
    unfinished_ = true;
    if (shared_.memory_waiters.retry(sessions_, shared_.now_ns)) shortage_.notify_short();
  }
  if (shared_.device->is_gone() && !notified_of_device_) {
    notified_of_device_ = true;
    shared_.events.emit(Event::of(EvKind::device_gone));
  }
  shared_.events.fill();
  // A batch must have room for all events of the completions that it polls, because only events of this batch
  // may refer to a receive slot. A completion makes at most two events (the end of a bulk call, and SENT for
  // its memory), or three when its session has just connected (SESSION_UP). Each completion may also have the
  // last segment of a message, which needs a free reassembly buffer.
  const std::uint32_t most = shared_.events.room() / (shared_.connecting != 0 ? 3 : 2);
  const std::size_t room = std::min(most, shared_.reassembled_messages.free());
  const std::size_t count = room == 0 ? 0 : poll(room);
  if (!shared_.fetched.empty()) deliver_fetched(count < room);
  // The condition uses the set instead of `shared_.connecting`, because a visit also removes sessions that
  // have ended.
  if (!shared_.sets.connecting.empty()) active_.check_connecting();
  if (active_.timeouts_pending()) {
    unfinished_ = true;
    active_.check_timeouts();
  }
  // Calls can only be late in sessions that wait for their peer (the set `holding`) or for credits (the set
  // `timed`).
  if (!shared_.sets.holding.empty() || !shared_.sets.timed.empty()) check_held();
  return shared_.events.count();
}

std::size_t Context::poll(std::size_t most) {
  const std::size_t count = shared_.cq->poll({completions_.data(), most});
  if (count != 0) unfinished_ = true;
  shared_.stats.completions += count;
  if (count > 1) prefetch_completions(sessions_, {completions_.data(), count});
  for (std::size_t i = 0; i < count; ++i) {
    const fabric::Wc& wc = completions_[i];
    const auto number = static_cast<std::uint32_t>((wc.wr_id & ~kReceiveBit) >> 32);
    const bool shared = number == kAllSessions;
    Session* session = find(shared ? wc.tag : number);
    if (session == nullptr) {
      if (shared && wc.wr_id != fabric::kNoReceive)
        shared_.shared_receives.came_for_ended_session(static_cast<std::uint32_t>(wc.wr_id));
      continue;
    }
    if ((wc.wr_id & kReceiveBit) != 0) {
      session->on_receive(wc);
    } else {
      session->on_send(wc);
    }
  }
  return count;
}

/// Polls completions before bulk data moves. JS may have been busy for a long time before it submitted its
/// responses. If the completion queue already contains the CANCEL of an answered call, the bytes of the
/// response need not be moved. The new events wait for the next iteration. At most as many completions are
/// polled as the next batch can hold. Events beyond that batch would wait in their order of arrival. A client
/// with hundreds of requests would then be served before all others.
void Context::drain_completions() {
  for (std::uint32_t i = 0; i < kDrainPollsMax && shared_.reassembled_messages.free() >= completions_.size();
       ++i) {
    const std::size_t room = std::min<std::size_t>(completions_.size(), shared_.events.room() / 2);
    if (room == 0 || poll(room) != room) return;
  }
}

/// Delivers requests whose last READ has completed. Such requests must wait until the completion queue no
/// longer holds an entry older than that READ. Such an entry may be the CANCEL of the call. A caller that has
/// sent CANCEL may already be writing to the buffers of the request (WIRE §5). Completions of READs and of
/// received frames have no fixed order.
void Context::deliver_fetched(bool queue_was_empty) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < shared_.fetched.size(); ++i) {
    const Shared::Fetched fetched = shared_.fetched[i];
    Session* session = find(fetched.session);
    if (session != nullptr && !session->deliver(fetched, queue_was_empty)) shared_.fetched[kept++] = fetched;
  }
  shared_.fetched.resize(kept);
  unfinished_ = true;
}

void Context::begin_callback() {
  shared_.events.lock();
  in_callback_ = true;
  shared_.arrays.control[ctl::in_callback] = 1;
}

void Context::retire_events() {
  for (std::uint32_t i = 0; i < shared_.events.count(); ++i) {
    const std::int32_t* words = shared_.events.at(i);
    const auto number = static_cast<std::uint32_t>(words[ev::session]);
    if (words[ev::kind] == static_cast<std::int32_t>(EvKind::session_down)) {
      if (on_session_gone_) on_session_gone_(number);
      sessions_.close(number);
      rows_.closed(SessionTable::index_of(number));
      shared_.arrays.control[ctl::sessions] = static_cast<std::int32_t>(sessions_.size());
    } else if (words[ev::receive_slot] != 0) {
      const auto slot = static_cast<std::uint32_t>(words[ev::receive_slot] - 1);
      if (ShortMessages::has(slot)) {
        shared_.short_messages.release(slot, number);
      } else if (Session* session = find(number)) {
        session->recycle(session->receives().slot(slot));
      }
      if (words[ev::region] == boundary::kReassembledMessage)
        shared_.reassembled_messages.release(static_cast<std::uint32_t>(words[ev::offset]));
    }
  }
}

bool Context::finish_turn() {
  const bool was_in_js = std::exchange(in_callback_, false);
  shared_.arrays.control[ctl::in_callback] = 0;
  if (shared_.events.count() != 0) retire_events();
  shared_.events.clear_and_unlock();
  consume_submissions();
  if (was_in_js && shared_.flow.waits()) drain_completions();
  bool more = !shared_.fetched.empty();
  if (active_.finish_turn()) more = true;
  if (shared_.flow.waits() && move_bulk()) more = true;
  if (shared_.arrays.control[ctl::want_slots] != 0 && shared_.slots.free() != 0) notify_slots_free();
  if (shared_.arrays.control[ctl::want_memory] != 0) shortage_.notify_free();
  unfinished_ = more || !shared_.events.empty();
  return unfinished_;
}

/// Moves bulk data. Must be called after all frames of the iteration have been posted, because posting bulk
/// data may copy the data, and frames that are posted later would wait for the copy. Returns true when more
/// bulk data can be moved at once.
bool Context::move_bulk() {
  bool unposted = false;
  const bool more =
      shared_.flow.move(shared_.now_ns, [&](Bulk kind, std::uint32_t number, std::int64_t& credit) {
        Session& session = *find(number);  // the session exists, because a session that ends leaves the queue
        const Moved moved = session.move(kind, credit);
        if (session.has_unposted()) unposted = true;
        active_.keep(session);
        return moved;
      });
  return more || unposted;
}

/// Emits SLOTS_FREE when a session that waits for a send slot may have one, or when JS waits for a slot
/// without naming a session.
void Context::notify_slots_free() {
  bool named = false, any = false;
  for (std::uint32_t index = 0; index < sessions_.entries(); ++index) {
    if (sessions_.at(index) == nullptr || !shared_.slots.wanted(index)) continue;
    named = true;
    any = any || shared_.slots.within_share(index);
  }
  if (named && !any) return;
  for (std::uint32_t index = 0; index < sessions_.entries(); ++index) shared_.slots.take_wanted(index);
  shared_.arrays.control[ctl::want_slots] = 0;
  shared_.events.emit(Event::of(EvKind::slots_free));
}

void Context::consume_submissions() {
  const std::int32_t count = std::exchange(shared_.arrays.control[ctl::staged], 0);
  const std::int32_t* const staged = shared_.arrays.submissions.data();
  if (count > 1) prefetch_submissions(sessions_, {staged, static_cast<std::size_t>(count) * sub::words});
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t* words = staged + std::ptrdiff_t{i} * sub::words;
    if (!shared_.slots.valid(words[sub::slot])) continue;
    const auto number = static_cast<std::uint32_t>(words[sub::session]);
    if (Session* session = find(number)) {
      session->submit(words);
      continue;
    }
    shared_.slots.release(static_cast<std::uint32_t>(words[sub::slot]));
    if (words[sub::op] == static_cast<std::int32_t>(boundary::SubOp::response)) continue;
    const auto call = static_cast<std::uint32_t>(words[sub::call]);
    shared_.events.emit(Event::failed(number, call, boundary::Reason::session_lost, boundary::Processed::no));
  }
}

void Context::flush() {
  consume_submissions();
  active_.post();
}

void Context::check_held() {
  if (!active_.check_held()) return;
  unfinished_ = true;  // abandoned READs leave room for others
  if (Session* session = shortage_.reclaim()) active_.keep(*session);
}

std::string Context::overdrawn() const {
  std::uint64_t granted = 0;
  for (std::uint32_t index = 0; index < sessions_.entries(); ++index) {
    const Session* session = sessions_.at(index);
    granted += session == nullptr ? 0 : session->granted();
  }
  const std::uint32_t posted = shared_.shared_receives.posted();
  if (granted <= posted) return "";
  return "peers may send " + std::to_string(granted) + " frames, but only " + std::to_string(posted) +
         " shared receives are posted";
}

}  // namespace rdma_rpc::session
