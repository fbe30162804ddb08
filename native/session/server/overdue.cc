// What a peer keeps waiting: requests that it does not let this side READ, answers that it grants no memory
// for or does not take. Each holds memory of the arena meanwhile, so each has an end: its deadline, or the
// end of a session whose peer moves too little. See server_half.h.
#include "session/server/server_half.h"

#include <algorithm>
#include <string>

namespace rdma_rpc::session {

namespace {
constexpr std::uint32_t kDeadlineExceeded = 4;
constexpr std::uint32_t kResourceExhausted = 8;

std::string within(std::uint64_t ns) { return " within " + std::to_string(ns / 1'000'000'000) + " s"; }
}  // namespace

void ServerHalf::enter(ServerCall& call, ServerState state) {
  if (call.waits_for_peer()) count_out(call);
  call.state = state;
  if (call.waits_for_peer()) count_in(call);
}

void ServerHalf::count_in(const ServerCall& call) {
  ++waiting_for_peer_;
  next_end_ns_ = std::min(next_end_ns_, end_ns(call));
  if (call.state == ServerState::fetching) fetching_bytes_ += call.bulk->total;
  if (call.state == ServerState::writing) answers_.began(call.bulk->total);
  if (call.waits_for_reader()) unread_.asked(call.bulk->stream, shared_.awake_ns);
}

void ServerHalf::count_out(const ServerCall& call) {
  --waiting_for_peer_;
  const ServerBulk& bulk = *call.bulk;
  if (call.state == ServerState::fetching) fetching_bytes_ -= bulk.total;
  if (call.state == ServerState::writing) answers_.ended(bulk.total, bulk.total - bulk.moved);
  if (call.waits_for_reader()) unread_.ended(bulk.stream);
}

/// When the call is over, by what its client said and the server allows.
std::uint64_t ServerHalf::deadline_ns(const ServerCall& call) const {
  std::uint64_t us = call.timeout_us;
  if (call.is_call()) {
    if (us == 0) us = options_.timeout_default_us;
    if (options_.timeout_max_us != 0 && us > options_.timeout_max_us) us = options_.timeout_max_us;
  }
  return us == 0 ? UINT64_MAX : call.arrived_ns + us * 1000;
}

/// When it is overdue, or might be.
std::uint64_t ServerHalf::end_ns(const ServerCall& call) const {
  // It ends with its READs.
  if (call.state == ServerState::fetching && call.cancelled) return UINT64_MAX;
  const std::uint64_t deadline = deadline_ns(call);
  // The reader of a stream may take its time while nobody else needs the memory (late.cc).
  if (call.state != ServerState::asking || call.part) return deadline;
  // The awake clock is never ahead of the other one.
  const std::uint64_t waited = shared_.awake_ns - call.bulk->asked_ns;
  return std::min(deadline, shared_.now_ns + kSinkWaitNs - std::min(waited, kSinkWaitNs));
}

void ServerHalf::check_bulk() {
  if (!reads_.look(shared_.awake_ns, link_.queue_pair().read_bytes_arrived(), fetching_bytes_)) {
    return link_.fail("the peer has let this side READ less than " + std::to_string(kBulkLeastBytes) +
                      " bytes of its requests" + within(kBulkStillNs) +
                      ": it is stopped, or the network is too slow for large messages");
  }
  if (!answers_.look(shared_.awake_ns, send_.write_bytes_ahead(), send_.write_bytes_completed())) {
    return link_.fail("the peer has taken less than " + std::to_string(kBulkLeastBytes) +
                      " bytes of its answers, or than a " + std::to_string(kBulkPeriods) +
                      "th of all that wait," + within(kBulkStillNs) +
                      ": it is stopped, or the network is too slow for large messages");
  }
  if (shared_.now_ns >= next_end_ns_) end_overdue();
}

void ServerHalf::end_overdue() {
  next_end_ns_ = UINT64_MAX;
  calls_.for_each([this](std::uint32_t slot, ServerCall& call) {
    if (!link_.is_open() || !call.waits_for_peer()) return;
    if (shared_.now_ns >= end_ns(call)) return end_late(slot, call);
    next_end_ns_ = std::min(next_end_ns_, end_ns(call));
  });
}

void ServerHalf::end_late(std::uint32_t slot, ServerCall& call) {
  const std::string total = std::to_string(call.bulk->total);
  switch (call.state) {
    case ServerState::fetching:
      return stop_fetching(slot, kDeadlineExceeded,
                           "the deadline passed while a request of " + total + " bytes was READ");
    case ServerState::writing:
      return stop_writing(slot, kDeadlineExceeded,
                          "the deadline passed while a response of " + total + " bytes was sent");
    default:
      if (shared_.now_ns >= deadline_ns(call)) {
        return refuse(
            slot, kDeadlineExceeded, true,
            "the deadline passed before the client had memory for a response of " + total + " bytes");
      }
      return refuse(
          slot, kResourceExhausted, true,
          "the client granted no memory for a response of " + total + " bytes" + within(kSinkWaitNs));
  }
}

}  // namespace rdma_rpc::session
