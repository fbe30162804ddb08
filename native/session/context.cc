// See context.h.
#include "session/context.h"

#include <algorithm>

namespace rdma_rpc::session {

namespace ctl = boundary::ctl;
namespace ev = boundary::ev;
namespace sub = boundary::sub;
using boundary::Event;
using boundary::EvKind;

namespace {
// A session number is a place and the count of sessions that have been there, so that a late answer of JS to
// a dead session cannot reach the one that took its place. 31 bits, as both live in Int32 words.
constexpr std::uint32_t kPlaceBits = 14;
constexpr std::uint32_t kPlaces = kSessionPlaces;
static_assert(kPlaces == 1u << kPlaceBits);
constexpr std::uint32_t kEpochMask = (1u << (31 - kPlaceBits)) - 1;
constexpr std::uint32_t kCqEntries = 4096;
}  // namespace

std::unique_ptr<Context> Context::open(std::shared_ptr<fabric::Device> device, const ContextOptions& options,
                                       std::string* error) {
  std::unique_ptr<Context> context(new Context());
  context->device_ = std::move(device);
  fabric::Device& dev = *context->device_;
  Exposure exposure = options.exposure;
  if (exposure == Exposure::automatic) {
    exposure = dev.capabilities().windows ? Exposure::window : Exposure::staging;
  }
  if (exposure == Exposure::window && !dev.capabilities().windows) {
    *error = "fabric " + dev.capabilities().name +
             " has no type-2 memory windows (option exposure: leave it out, or choose staging)";
    return nullptr;
  }
  if (options.mr_cache.on_demand && dev.capabilities().pins_memory && !dev.capabilities().on_demand) {
    *error = "fabric " + dev.capabilities().name +
             " has no on-demand paging (option registration: leave it out, or choose pinned)";
    return nullptr;
  }
  if (std::string unfit = Session::why_unfit(dev.capabilities()); !unfit.empty()) {
    *error = "fabric " + dev.capabilities().name + " cannot be used: " + unfit;
    return nullptr;
  }
  context->cq_ = dev.create_cq(kCqEntries);
  if (context->cq_ == nullptr) {
    *error = "no completion queue: " + dev.refusal();
    return nullptr;
  }
  const std::uint32_t stride = SendSlots::send_stride_for(options.slot_bytes);
  const std::uint32_t segmented = options.segmented_bytes.value_or(dev.capabilities().segmented_bytes);
  const std::uint32_t long_slots = segmented == 0 ? 0 : kLongSlots;
  auto memory = dev.alloc_memory(SendSlots::bytes_for(options.send_slots, stride, long_slots), "send slots");
  if (memory == nullptr) {
    *error = "no memory for " + std::to_string(options.send_slots) +
             " send slots (option sendSlots): " + dev.refusal();
    return nullptr;
  }
  auto region = dev.reg_mr(memory->data(), memory->size(), fabric::access_local_write, error);
  if (region == nullptr) return nullptr;
  memory::ArenaOptions arena = options.arena;
  // A chunk is of one size of block: few large ones would leave a small arena without memory for other sizes.
  arena.chunk_bytes = std::min(arena.chunk_bytes, arena.budget_bytes / kArenaChunksMin);
  memory::MrCacheOptions mr_cache = options.mr_cache;
  if (exposure == Exposure::shared) {
    arena.remote_access = fabric::access_remote_read | fabric::access_remote_write;
    mr_cache.remote_access = fabric::access_remote_read;
  }
  context->arena_ = std::make_unique<memory::Arena>(dev, arena);
  context->mr_cache_ = std::make_unique<memory::MrCache>(dev, mr_cache);
  context->windows_ = std::make_unique<WindowPool>(dev);
  context->control_.resize(ctl::words);
  context->submissions_.resize(std::size_t{kSubmissionsMax} * sub::words);
  context->event_words_.resize(std::size_t{kEventsMax} * ev::words);
  context->free_slots_.resize(options.send_slots);
  context->session_slots_.resize(std::size_t{kSessionPlaces} * boundary::slots::words);
  context->slots_ = std::make_unique<SendSlots>(std::move(memory), std::move(region), options.send_slots,
                                                stride, long_slots, context->control_.data(),
                                                context->free_slots_.data(), context->session_slots_.data());
  context->events_ = std::make_unique<EventQueue>(context->event_words_.data());
  context->page_ = telemetry::CountersPage::open(options.publish_counters);
  if (context->page_ == nullptr) {
    *error = "no memory for counters";
    return nullptr;
  }
  context->shared_.reset(new Shared{dev,
                                    *context->cq_,
                                    *context->arena_,
                                    *context->mr_cache_,
                                    *context->windows_,
                                    *context->slots_,
                                    *context->events_,
                                    context->predictor_,
                                    context->stats_,
                                    context->page_->latencies(),
                                    context->page_->events(),
                                    exposure,
                                    options.slot_bytes,
                                    segmented,
                                    options.counters_start,
                                    options.shared_from,
                                    context->control_[ctl::short_bytes],
                                    {dev.capabilities(), options.read_bytes_max}});
  if (context->shared_->whole.data() == nullptr) {
    *error = "no " + std::to_string(WholeMessages::bytes()) +
             " bytes of addresses for messages that come in several SENDs (ulimit -v)";
    return nullptr;
  }
  Context* self = context.get();
  context->mr_cache_->on_evict([self](std::uint64_t key) { self->emit_evicted(key); });
  return context;
}

Context::~Context() {
  if (mr_cache_ != nullptr) mr_cache_->on_evict(nullptr);
  for (Place& place : places_) place.session.reset();
  if (windows_ != nullptr) windows_->clear();
}

void Context::leave_device() {
  for (Place& place : places_) place.session.reset();
  session_count_ = 0;
  windows_->clear();
  mr_cache_->clear();
  slots_->leave_device();
  arena_->leave_device();
  shared_->shared_receives.leave_device();
  cq_.reset();
  device_.reset();
}

const Session* Context::at_place(std::uint32_t number) const {
  const std::uint32_t index = number & (kPlaces - 1);
  return index < places_.size() ? places_[index].session.get() : nullptr;
}

Session* Context::find(std::uint32_t number) {
  const std::uint32_t index = number & (kPlaces - 1);
  if (index >= places_.size()) return nullptr;
  const Place& place = places_[index];
  return place.session != nullptr && place.session->number() == number ? place.session.get() : nullptr;
}

std::int64_t Context::create_session(const SessionOptions& options, std::string* error) {
  const bool fresh = free_places_.empty();
  const auto index = fresh ? static_cast<std::uint32_t>(places_.size()) : free_places_.front();
  if (index == kPlaces) {
    *error = "a context has at most " + std::to_string(kPlaces) + " sessions";
    return -1;
  }
  if (fresh) {
    places_.emplace_back();
    free_places_.push_back(index);
    for (SessionSet* set :
         {&shared_->sets.touched, &shared_->sets.timed, &shared_->sets.holding, &shared_->sets.connecting}) {
      set->reserve(places_.capacity());
    }
  }
  Place& place = places_[index];
  place.epoch = (place.epoch + 1) & kEpochMask;
  if ((place.epoch << kPlaceBits | index) == kAllSessions) place.epoch = 0;
  const std::uint32_t number = place.epoch << kPlaceBits | index;
  place.session = Session::open(*shared_, number, options, error);
  if (place.session == nullptr) return -1;
  free_places_.pop_front();
  take_row(index);
  control_[ctl::sessions] = static_cast<std::int32_t>(++session_count_);
  return number;
}

memory::BlockId Context::alloc(std::size_t bytes, memory::Use use, memory::OwnerId owner) {
  const memory::BlockId block = arena_->alloc(bytes, use, owner);
  if (block == memory::kNoBlock) shared_->refusal = arena_->refusal();
  return block;
}

void Context::emit_evicted(std::uint64_t key) {
  Event event = Event::of(EvKind::evicted);
  event.set(ev::key_low, key & 0xffffffff);
  event.set(ev::key_high, key >> 32);
  events_->emit(event);
}

void Context::set_time(std::uint64_t now_ns) {
  shared_->now_ns = now_ns;
  if (now_ns <= turn_ns_) return;  // a turn may go by a time that was read before JS ran
  shared_->awake_ns += std::min(now_ns - std::exchange(turn_ns_, now_ns), kAwakeStepNs);
}

std::uint32_t Context::progress(std::uint64_t now_ns) {
  set_time(now_ns);
  // First, so that a call on a session which is about to end fails before its SESSION_DOWN.
  if (control_[ctl::staged] != 0) {
    unfinished_ = true;
    consume_submissions();
  }
  if (shared_->memory_waiters.size() != 0) {
    unfinished_ = true;
    retry_memory();
  }
  if (device_->is_gone() && !told_of_device_) {
    told_of_device_ = true;
    events_->emit(Event::of(EvKind::device_gone));
  }
  events_->fill();
  // A completion makes at most two events that must be in this batch (the end of a bulk and its memory), and
  // only what is in it may refer to a receive slot.
  // A session that has just connected says so first. Each may bring the last segment of a message.
  const std::uint32_t most = events_->room() / (shared_->connecting != 0 ? 3 : 2);
  const std::size_t room = std::min(most, shared_->whole.free());
  const std::size_t count = room == 0 ? 0 : poll(room);
  if (!shared_->fetched.empty()) deliver_fetched(count < room);
  // By the sets, not by how many are in them for good reason: a visit also takes out those that have ended.
  if (!shared_->sets.connecting.empty()) check_connecting();
  if (timeouts_pending_) check_timeouts();
  // What is late waits for its peer, or for credits.
  if (!shared_->sets.holding.empty() || !shared_->sets.timed.empty()) check_held();
  return events_->count();
}

std::size_t Context::poll(std::size_t most) {
  const std::size_t count = cq_->poll({completions_.data(), most});
  if (count != 0) unfinished_ = true;
  stats_.completions += count;
  if (count > 1) expect_completions(count);
  for (std::size_t i = 0; i < count; ++i) {
    const fabric::Wc& wc = completions_[i];
    const auto number = static_cast<std::uint32_t>((wc.wr_id & ~kReceiveBit) >> 32);
    const bool shared = number == kAllSessions;
    Session* session = find(shared ? wc.tag : number);
    if (session == nullptr) {
      if (shared && wc.wr_id != fabric::kNoReceive)
        shared_->shared_receives.came_for_nobody(static_cast<std::uint32_t>(wc.wr_id));
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
  for (std::uint32_t i = 0; i < kDrainPollsMax && shared_->whole.free() >= completions_.size(); ++i) {
    const std::size_t room = std::min<std::size_t>(completions_.size(), events_->room() / 2);
    if (room == 0 || poll(room) != room) return;
  }
}

/// A request goes to its handler only when nothing is left in the queue that had come before its last READ
/// was over: a caller whose call has ended may write to the buffers of the request, and the CANCEL of that
/// call was here before (WIRE §5). Completions of READs and frames come in no fixed order.
void Context::deliver_fetched(bool queue_was_empty) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < shared_->fetched.size(); ++i) {
    const Shared::Fetched fetched = shared_->fetched[i];
    Session* session = find(fetched.session);
    if (session != nullptr && !session->deliver(fetched, queue_was_empty)) shared_->fetched[kept++] = fetched;
  }
  shared_->fetched.resize(kept);
  unfinished_ = true;
}

void Context::begin_callback() {
  events_->lock();
  in_callback_ = true;
  control_[ctl::in_callback] = 1;
}

void Context::retire_events() {
  for (std::uint32_t i = 0; i < events_->count(); ++i) {
    const std::int32_t* words = events_->at(i);
    const auto number = static_cast<std::uint32_t>(words[ev::session]);
    if (words[ev::kind] == static_cast<std::int32_t>(EvKind::session_down)) {
      if (on_session_gone_) on_session_gone_(number);
      const std::uint32_t index = number & (kPlaces - 1);
      places_[index].session.reset();
      free_places_.push_back(index);
      forget_session(index);
      control_[ctl::sessions] = static_cast<std::int32_t>(--session_count_);
    } else if (words[ev::receive_slot] != 0) {
      const auto slot = static_cast<std::uint32_t>(words[ev::receive_slot] - 1);
      if (BriefMessages::has(slot)) {
        shared_->brief.release(slot, number);
      } else if (Session* session = find(number)) {
        session->recycle(session->receives().slot(slot));
      }
      if (words[ev::region] == boundary::kWholeMessage)
        shared_->whole.release(static_cast<std::uint32_t>(words[ev::offset]));
    }
  }
}

bool Context::finish_turn() {
  const bool was_in_js = std::exchange(in_callback_, false);
  control_[ctl::in_callback] = 0;
  if (events_->count() != 0) retire_events();
  events_->clear_and_unlock();
  consume_submissions();
  if (was_in_js && shared_->flow.waits()) drain_completions();
  bool more = !shared_->fetched.empty();
  holds_ = !shared_->sets.holding.empty();
  const auto visit = [this, &more](Session& session) {
    if (session.finish_turn()) more = true;
    keep(session);
  };
  looked_at_ += shared_->sets.touched.visit(finder(), visit);
  if (shared_->flow.waits() && move_bulk()) more = true;
  if (control_[ctl::want_slots] != 0 && slots_->free() != 0) tell_slots_free();
  if (control_[ctl::want_memory] != 0) tell_memory_free();
  unfinished_ = more || !events_->empty();
  return unfinished_;
}

/// After all frames of the turn: a post may be a copy, which those would wait for. True: there is more to
/// move at once.
bool Context::move_bulk() {
  bool unposted = false;
  const bool more =
      shared_->flow.move(shared_->now_ns, [&](Bulk kind, std::uint32_t number, std::int64_t& credit) {
        Session& session = *find(number);  // one that has ended has left
        const Moved moved = session.move(kind, credit);
        if (session.has_unposted()) unposted = true;
        keep(session);
        return moved;
      });
  return more || unposted;
}

/// To JS, when a session that waits for a slot may have one. Who waits without naming one may, too.
void Context::tell_slots_free() {
  bool named = false, any = false;
  for (std::uint32_t place = 0; place < places_.size(); ++place) {
    if (places_[place].session == nullptr || !slots_->wanted(place)) continue;
    named = true;
    any = any || slots_->within_share(place);
  }
  if (named && !any) return;
  for (std::uint32_t place = 0; place < places_.size(); ++place) slots_->take_wanted(place);
  control_[ctl::want_slots] = 0;
  events_->emit(Event::of(EvKind::slots_free));
}

void Context::consume_submissions() {
  const std::int32_t count = std::exchange(control_[ctl::staged], 0);
  if (count > 1) expect_submissions(count);
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t* words = submissions_.data() + std::ptrdiff_t{i} * sub::words;
    if (!slots_->valid(words[sub::slot])) continue;
    const auto number = static_cast<std::uint32_t>(words[sub::session]);
    if (Session* session = find(number)) {
      session->submit(words);
      continue;
    }
    slots_->release(static_cast<std::uint32_t>(words[sub::slot]));
    if (words[sub::op] == static_cast<std::int32_t>(boundary::SubOp::response)) continue;
    Event event = Event::of(EvKind::failed, number, static_cast<std::uint32_t>(words[sub::call]));
    event.set(ev::reason, boundary::Reason::session_lost);
    events_->emit(event);
  }
}

void Context::flush() {
  consume_submissions();
  const std::vector<std::uint32_t>& touched = shared_->sets.touched.numbers();
  for (std::size_t i = 0; i < touched.size(); ++i) {
    Session* session = find(touched[i]);
    if (session == nullptr) continue;
    ++looked_at_;
    session->post();
    keep(*session);
  }
}

}  // namespace rdma_rpc::session
