// See peer_watch.h.
#include "session/server/peer_watch.h"

#include <algorithm>

namespace rdma_rpc::session {

std::string within(std::uint64_t ns) { return " within " + std::to_string(ns / 1'000'000'000) + " s"; }

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
  // A cancelled request ends when its READs have completed.
  if (call.state == ServerState::fetching && call.cancelled) return UINT64_MAX;
  const std::uint64_t deadline = deadline_ns(call);
  // The reader of a stream has no time limit of its own while no other call needs the memory (late.cc).
  if (call.state != ServerState::asking || call.part) return deadline;
  // The limit is on the awake clock, which never runs faster than the clock of `now_ns`.
  const std::uint64_t waited = shared_.awake_ns - call.bulk->asked_ns;
  return std::min(deadline, shared_.now_ns + kReplyBufferWaitNs - std::min(waited, kReplyBufferWaitNs));
}

std::string PeerWatch::look() {
  if (!reads_.look(shared_.awake_ns, link_.queue_pair().read_bytes_arrived(), fetching_bytes_)) {
    return "the peer has let this side read less than " + std::to_string(kBulkLeastBytes) +
           " bytes of its requests" + within(kBulkStillNs) +
           ": it is stopped, or the network is too slow for large messages";
  }
  const SendQueue& send = link_.send();
  if (!answers_.look(shared_.awake_ns, send.write_bytes_ahead(), send.write_bytes_completed())) {
    return "the peer has accepted less than " + std::to_string(kBulkLeastBytes) + " bytes or 1/" +
           std::to_string(kBulkPeriods) + " of its responses" + within(kBulkStillNs) +
           ": it is stopped, or the network is too slow for large messages";
  }
  return "";
}

}  // namespace rdma_rpc::session
