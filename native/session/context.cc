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

/// The same, with nothing left to be chosen.
ContextOptions with_defaults(ContextOptions options, const fabric::Capabilities& can) {
  if (options.exposure == Exposure::automatic)
    options.exposure = can.windows ? Exposure::window : Exposure::staging;
  if (!options.segmented_bytes) options.segmented_bytes = can.segmented_bytes;
  // A chunk is of one size of block: few large ones would leave a small arena without memory for other sizes.
  options.arena.chunk_bytes =
      std::min(options.arena.chunk_bytes, options.arena.budget_bytes / kArenaChunksMin);
  if (options.exposure == Exposure::shared) {
    options.arena.remote_access = fabric::access_remote_read | fabric::access_remote_write;
    options.mr_cache.remote_access = fabric::access_remote_read;
  }
  return options;
}

/// Why a device cannot do what these options say. Empty when it can.
std::string why_refused(const ContextOptions& options, const fabric::Capabilities& can) {
  if (options.exposure == Exposure::window && !can.windows)
    return " has no type-2 memory windows (option exposure: leave it out, or choose staging)";
  if (options.mr_cache.on_demand && can.pins_memory && !can.on_demand)
    return " has no on-demand paging (option registration: leave it out, or choose pinned)";
  const std::string unfit = Session::why_unfit(can);
  return unfit.empty() ? "" : " cannot be used: " + unfit;
}

/// Asks device and system for all that they may refuse. Returns why they do, or "".
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
  if (now_ns <= turn_ns_) return;  // a turn may go by a time that was read before JS ran
  shared_.awake_ns += std::min(now_ns - std::exchange(turn_ns_, now_ns), kAwakeStepNs);
}

std::uint32_t Context::progress(std::uint64_t now_ns) {
  set_time(now_ns);
  // First, so that a call on a session which is about to end fails before its SESSION_DOWN.
  if (shared_.arrays.control[ctl::staged] != 0) {
    unfinished_ = true;
    consume_submissions();
  }
  if (shared_.memory_waiters.size() != 0) {
    unfinished_ = true;
    if (shared_.memory_waiters.retry(sessions_, shared_.now_ns)) shortage_.tell_short();
  }
  if (shared_.device->is_gone() && !told_of_device_) {
    told_of_device_ = true;
    shared_.events.emit(Event::of(EvKind::device_gone));
  }
  shared_.events.fill();
  // A completion makes at most two events that must be in this batch (the end of a bulk and its memory), and
  // only what is in it may refer to a receive slot.
  // A session that has just connected says so first. Each may bring the last segment of a message.
  const std::uint32_t most = shared_.events.room() / (shared_.connecting != 0 ? 3 : 2);
  const std::size_t room = std::min(most, shared_.reassembled_messages.free());
  const std::size_t count = room == 0 ? 0 : poll(room);
  if (!shared_.fetched.empty()) deliver_fetched(count < room);
  // By the sets, not by how many are in them for good reason: a visit also takes out those that have ended.
  if (!shared_.sets.connecting.empty()) active_.check_connecting();
  if (active_.timeouts_pending()) {
    unfinished_ = true;
    active_.check_timeouts();
  }
  // What is late waits for its peer, or for credits.
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
        shared_.shared_receives.came_for_nobody(static_cast<std::uint32_t>(wc.wr_id));
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

/// JS may have been busy for long, and its answers are staged: a CANCEL of one lies in the queue, perhaps,
/// and then its bytes need not be moved. What comes of this poll waits for the next turn, and no more is
/// polled than the next batch holds: behind that events wait in the order in which they came, and a client
/// with hundreds of requests would have its turns before all others.
void Context::drain_completions() {
  for (std::uint32_t i = 0; i < kDrainPollsMax && shared_.reassembled_messages.free() >= completions_.size();
       ++i) {
    const std::size_t room = std::min<std::size_t>(completions_.size(), shared_.events.room() / 2);
    if (room == 0 || poll(room) != room) return;
  }
}

/// A request goes to its handler only when nothing is left in the queue that had come before its last READ
/// was over: a caller whose call has ended may write to the buffers of the request, and the CANCEL of that
/// call was here before (WIRE §5). Completions of READs and frames come in no fixed order.
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
  if (shared_.arrays.control[ctl::want_slots] != 0 && shared_.slots.free() != 0) tell_slots_free();
  if (shared_.arrays.control[ctl::want_memory] != 0) shortage_.tell_free();
  unfinished_ = more || !shared_.events.empty();
  return unfinished_;
}

/// After all frames of the turn: a post may be a copy, which those would wait for. True: there is more to
/// move at once.
bool Context::move_bulk() {
  bool unposted = false;
  const bool more =
      shared_.flow.move(shared_.now_ns, [&](Bulk kind, std::uint32_t number, std::int64_t& credit) {
        Session& session = *find(number);  // one that has ended has left
        const Moved moved = session.move(kind, credit);
        if (session.has_unposted()) unposted = true;
        active_.keep(session);
        return moved;
      });
  return more || unposted;
}

/// To JS, when a session that waits for a slot may have one. Who waits without naming one may, too.
void Context::tell_slots_free() {
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
  unfinished_ = true;  // READs that have stopped counting leave room for others
  if (Session* session = shortage_.give_up()) active_.keep(*session);
}

std::string Context::overdrawn() const {
  std::uint64_t granted = 0;
  for (std::uint32_t index = 0; index < sessions_.entries(); ++index) {
    const Session* session = sessions_.at(index);
    granted += session == nullptr ? 0 : session->granted();
  }
  const std::uint32_t posted = shared_.shared_receives.posted();
  if (granted <= posted) return "";
  return std::to_string(granted) + " frames may come, and " + std::to_string(posted) +
         " shared receives are posted";
}

}  // namespace rdma_rpc::session
