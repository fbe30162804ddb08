// See peer_watch.h.
#include "session/server/peer_watch.h"

#include <algorithm>

namespace rdma_rpc::session {

namespace {
std::string within(std::uint64_t ns) { return " within " + std::to_string(ns / 1'000'000'000) + " s"; }
}  // namespace

void PeerWatch::begins(const ServerCall& call) {
  ++waiting_;
  note_end(call);
  if (call.state == ServerState::fetching) fetching_bytes_ += call.bulk->total;
  if (call.state == ServerState::writing) answers_.began(call.bulk->total);
  if (call.waits_for_reader()) unread_.asked(call.bulk->stream, shared_.awake_ns);
}

void PeerWatch::ends(const ServerCall& call) {
  --waiting_;
  const ServerBulk& bulk = *call.bulk;
  if (call.state == ServerState::fetching) fetching_bytes_ -= bulk.total;
  if (call.state == ServerState::writing) answers_.ended(bulk.total, bulk.total - bulk.moved);
  if (call.waits_for_reader()) unread_.ended(bulk.stream);
}

std::uint64_t PeerWatch::deadline_ns(const ServerCall& call) const {
  std::uint64_t us = call.timeout_us;
  if (call.is_call()) {
    if (us == 0) us = link_.options().timeout_default_us;
    if (link_.options().timeout_max_us != 0 && us > link_.options().timeout_max_us)
      us = link_.options().timeout_max_us;
  }
  return us == 0 ? UINT64_MAX : call.arrived_ns + us * 1000;
}

std::uint64_t PeerWatch::end_ns(const ServerCall& call) const {
  // It ends with its READs.
  if (call.state == ServerState::fetching && call.cancelled) return UINT64_MAX;
  const std::uint64_t deadline = deadline_ns(call);
  // The reader of a stream may take its time while nobody else needs the memory (late.cc).
  if (call.state != ServerState::asking || call.part) return deadline;
  // The awake clock is never ahead of the other one.
  const std::uint64_t waited = shared_.awake_ns - call.bulk->asked_ns;
  return std::min(deadline, shared_.now_ns + kReplyBufferWaitNs - std::min(waited, kReplyBufferWaitNs));
}

std::string PeerWatch::look() {
  if (!reads_.look(shared_.awake_ns, link_.queue_pair().read_bytes_arrived(), fetching_bytes_)) {
    return "the peer has let this side READ less than " + std::to_string(kBulkLeastBytes) +
           " bytes of its requests" + within(kBulkStillNs) +
           ": it is stopped, or the network is too slow for large messages";
  }
  const SendQueue& send = link_.send();
  if (!answers_.look(shared_.awake_ns, send.write_bytes_ahead(), send.write_bytes_completed())) {
    return "the peer has taken less than " + std::to_string(kBulkLeastBytes) +
           " bytes of its answers, or than a " + std::to_string(kBulkPeriods) + "th of all that wait," +
           within(kBulkStillNs) + ": it is stopped, or the network is too slow for large messages";
  }
  return "";
}

}  // namespace rdma_rpc::session
