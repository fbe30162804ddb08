// Implements the clock and the order of events, see world.h. This code runs on the world's thread.
#include "fabric/sim/world.h"

#include <algorithm>
#include <random>

#include "fabric/sim/queue_pair.h"

namespace rdma_rpc::fabric {
namespace {

// Everything else in a world is derived from its seed. This token is random, because it must distinguish two
// worlds with the same seed.
std::uint64_t make_token() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source();
}

}  // namespace

World::World(SimOptions options)
    : options_(std::move(options)), token_(make_token()), random_state_(options_.seed) {}

// splitmix64: it has one word of state, and returns the same numbers on every machine.
std::uint64_t World::random() {
  std::uint64_t z = random_state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t World::latency() {
  return scheduled() ? between(options_.latency_min_ns, options_.latency_max_ns) : 0;
}

std::uint64_t World::read_extra() { return scheduled() ? between(0, options_.read_extra_max_ns) : 0; }

std::uint32_t World::packet_copies(std::uint32_t qp_num) {
  if (faults.loses_packet(qp_num) || chance(options_.loss_ppm)) {
    ++counters.packets_lost;
    return 0;
  }
  if (!chance(options_.duplicate_ppm)) return 1;
  ++counters.packets_doubled;
  return 2;
}

std::uint64_t World::packet_delay() {
  return scheduled() && chance(options_.reorder_ppm) ? between(1, options_.reorder_max_ns) : 0;
}

std::uint32_t World::add(SimQueuePair& qp) {
  queue_pairs_.emplace(++last_qp_num_, &qp);
  ready_.reserve(queue_pairs_.size());
  return last_qp_num_;
}

void World::remove(SimQueuePair& qp) {
  queue_pairs_.erase(qp.qp_num());
  std::erase(ready_, &qp);
}

SimQueuePair* World::find(std::uint32_t qp_num) const {
  const auto found = queue_pairs_.find(qp_num);
  return found == queue_pairs_.end() ? nullptr : found->second;
}

void World::wake(SimQueuePair& qp, std::uint64_t at) {
  if (!scheduled()) {
    if (qp.is_ready) return;
    qp.is_ready = true;
    ready_.push_back(&qp);
    return;
  }
  events_.push_back({std::max(at, now_), sequence_++, qp.qp_num()});
  std::push_heap(events_.begin(), events_.end(), later);
}

void World::wake_peers_of(const SimQueuePair& qp) {
  for (const std::uint32_t number : qp.reached_by()) {
    if (SimQueuePair* other = find(number)) wake(*other, now_);
  }
}

void World::settle() {
  if (settling_ || ready_.empty()) return;
  settling_ = true;
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    SimQueuePair& qp = *ready_[i];
    // The flag is cleared first. progress() may wake the queue pair again, which then appends it once more.
    qp.is_ready = false;
    qp.progress();
  }
  ready_.clear();
  settling_ = false;
}

bool World::step(std::uint64_t until) {
  if (events_.empty() || events_.front().time > until) return false;
  std::pop_heap(events_.begin(), events_.end(), later);
  const Event event = events_.back();
  events_.pop_back();
  now_ = event.time;
  if (SimQueuePair* qp = find(event.qp_num)) qp->progress();
  return true;
}

void World::completed(const Wc& wc) {
  ++counters.completions;
  if (observer) observer({now_, wc});
}

void World::set_stopped(const Device& device, bool stopped) {
  for (SimDevice* candidate : devices) {
    if (candidate == &device) candidate->stopped = stopped;
  }
  // All queue pairs are woken, because some may have waited for this device.
  for (const auto& [number, qp] : queue_pairs_) wake(*qp, now_);
  settle();
}

void World::kill(const Device& device, WcStatus seen_by_peers) {
  for (const auto& [number, qp] : queue_pairs_) {
    if (&qp->device() == &device) qp->kill(seen_by_peers);
  }
  settle();
}

}  // namespace rdma_rpc::fabric
