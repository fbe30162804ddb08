// SimWorld is the public interface of a World. This code runs on the world's thread.
#include "fabric/sim/sim.h"

#include "fabric/sim/queue_pair.h"

namespace rdma_rpc::fabric {

SimWorld::SimWorld(SimOptions options) : world_(std::make_unique<World>(std::move(options))) {}
SimWorld::~SimWorld() = default;

std::unique_ptr<Device> SimWorld::open_device(std::string name) {
  return std::make_unique<SimDevice>(*world_, std::move(name));
}

std::uint64_t SimWorld::now_ns() const { return world_->now(); }

void SimWorld::advance(std::uint64_t ns) {
  const std::uint64_t until = world_->now() + ns;
  while (world_->step(until)) {
  }
  world_->advance_to(until);
}

bool SimWorld::step() { return world_->step(UINT64_MAX); }

void SimWorld::run_until_idle() {
  while (step()) {
  }
}

void SimWorld::fail(const SimFault& fault) { world_->faults.add(fault); }
void SimWorld::lose_packet(std::uint32_t qp_num, std::uint64_t nth) {
  world_->faults.lose_packet(qp_num, nth);
}
void SimWorld::fail_nth(SimResource resource, std::uint64_t nth) { world_->faults.fail_nth(resource, nth); }

void SimWorld::fail_connect(std::string why) { world_->faults.fail_connect(std::move(why)); }

void SimWorld::delay(std::uint32_t qp_num, std::uint64_t extra_ns) {
  if (SimQueuePair* qp = world_->find(qp_num)) qp->delay(extra_ns);
}

void SimWorld::hold_completions(std::uint32_t qp_num) {
  if (SimQueuePair* qp = world_->find(qp_num)) qp->hold_completions();
}

void SimWorld::release_completions(std::uint32_t qp_num) {
  if (SimQueuePair* qp = world_->find(qp_num)) qp->release_completions();
}

void SimWorld::stop(const Device& device) { world_->set_stopped(device, true); }
void SimWorld::resume(const Device& device) { world_->set_stopped(device, false); }
void SimWorld::kill(const Device& device, WcStatus seen_by_peers) { world_->kill(device, seen_by_peers); }

void SimWorld::kill(std::uint32_t qp_num, WcStatus seen_by_peer) {
  if (SimQueuePair* qp = world_->find(qp_num)) qp->kill(seen_by_peer);
  world_->settle();
}

SimCounters SimWorld::counters() const {
  SimCounters counters = world_->counters;
  counters.faults = world_->faults.fired();
  return counters;
}

void SimWorld::on_completion(std::function<void(const SimTrace&)> observer) {
  world_->observer = std::move(observer);
}

}  // namespace rdma_rpc::fabric
