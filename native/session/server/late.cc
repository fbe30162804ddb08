// Ends calls that wait for their peer for too long (peer_watch.h): at their deadlines, or after minutes.
// While other calls wait for memory, a peer that is stopped or much too slow gets only seconds.
// MemoryShortage then chooses the session and calls Endpoint::reclaim_memory(). See server_endpoint.h.
#include <algorithm>
#include <string>

#include "session/server/server_endpoint.h"
#include "session/server/status.h"

namespace rdma_rpc::session {

namespace {
/// Describes in an error text the least that a peer must move, as AnswersUnderWay and ReadsUnderWay compute
/// it.
std::string less_than(const char* of) {
  return "less than " + std::to_string(kReclaimBytes) + " bytes or 1/" + std::to_string(kBulkPeriods) +
         " of " + of;
}
std::string while_others_waited() {
  return within(kReclaimNs) +
         " while other calls waited for that memory; raise the server's arenaBytes, or send less at once";
}
}  // namespace

void ServerEndpoint::check_held() {
  if (const std::string why = watch_.look(); !why.empty()) return link_.fail(why);
  if (watch_.may_be_overdue()) end_overdue();
}

void ServerEndpoint::end_overdue() {
  watch_.forget_ends();
  calls_.for_each([this](std::uint32_t slot, ServerCall& call) {
    if (!link_.is_open() || !call.waits_for_peer()) return;
    if (shared_.now_ns >= watch_.end_ns(call)) return end_late(slot, call);
    watch_.note_end(call);
  });
}

void ServerEndpoint::end_late(std::uint32_t slot, ServerCall& call) {
  const std::string total = std::to_string(call.bulk->total);
  switch (call.state) {
    case ServerState::fetching:
      return stop_fetching(slot, kDeadlineExceeded,
                           "the deadline passed while the server read a request of " + total + " bytes");
    case ServerState::writing:
      return stop_writing(slot, kDeadlineExceeded,
                          "the deadline passed while the server wrote a response of " + total + " bytes");
    default:
      if (shared_.now_ns >= watch_.deadline_ns(call)) {
        return refuse(
            slot, kDeadlineExceeded, true,
            "the deadline passed before the client had memory for a response of " + total + " bytes");
      }
      return refuse(
          slot, kResourceExhausted, true,
          "the client granted no memory for a response of " + total + " bytes" + within(kReplyBufferWaitNs));
  }
}

// --- while other calls wait for memory

std::uint64_t ServerEndpoint::late_ns() {
  const std::uint64_t credits_ns = finishing_.any() ? link_.no_credit_ns() : 0;
  return std::max(
      {requests_late_ns(), asked_ns(), unread().ns, watch_.answers().late_ns(shared_.awake_ns), credits_ns});
}

/// Returns for how long READs have been late. Returns 0 when no late request holds memory, because a request
/// whose memory was reclaimed may still have READs in flight.
std::uint64_t ServerEndpoint::requests_late_ns() {
  if (watch_.reads().late_ns(shared_.awake_ns) == 0) return 0;
  bool keep = false;
  calls_.for_each([&keep](std::uint32_t, const ServerCall& call) {
    keep = keep || (call.state == ServerState::fetching && call.bulk->block != memory::kNoBlock);
  });
  return keep ? watch_.reads().late_ns(shared_.awake_ns) : 0;
}

/// Returns for how long the oldest response has waited for the client to grant memory.
std::uint64_t ServerEndpoint::asked_ns() {
  std::uint64_t longest = 0;
  calls_.for_each([&](std::uint32_t, const ServerCall& call) {
    if (call.state == ServerState::asking && !call.part)
      longest = std::max(longest, shared_.awake_ns - call.bulk->asked_ns);
  });
  return longest;
}

/// Returns the stream that has waited longest for memory from its client, if its waiting time is too long
/// while other calls wait for memory.
UnreadStreams::Longest ServerEndpoint::unread() const {
  const UnreadStreams::Longest longest = watch_.unread().longest(shared_.awake_ns);
  return longest.ns >= kUnreadStreamNs ? longest : UnreadStreams::Longest{};
}

void ServerEndpoint::reclaim_memory() {
  if (requests_late_ns() >= kReclaimNs) stop_late_requests();
  if (!link_.is_open()) return;
  // Single calls are ended before the whole session is ended.
  if (asked_ns() >= kReclaimNs) return refuse_late_answers();
  if (const UnreadStreams::Longest longest = unread(); longest.ns != 0)
    return refuse_messages_of(longest.stream);
  const bool late = watch_.answers().late_ns(shared_.awake_ns) >= kReclaimNs;
  if (late || (finishing_.any() && link_.no_credit_ns() >= kReclaimNs))
    link_.fail("the peer has accepted " + less_than("its responses") + while_others_waited());
}

/// Ends requests whose READs the client answers too slowly. When a device may still write to their memory,
/// only the end of the session frees the memory.
void ServerEndpoint::stop_late_requests() {
  bool kept = false;
  const auto holds = [](const ServerCall& call) {
    return call.state == ServerState::fetching && call.bulk->block != memory::kNoBlock;
  };
  calls_.for_each([&](std::uint32_t slot, ServerCall& call) {
    if (!holds(call)) return;
    if (!call.cancelled) {
      stop_fetching(slot, kResourceExhausted,
                    "the client let the server read " + less_than("its requests") + while_others_waited());
    }
    kept = kept || holds(call);
  });
  if (kept) link_.fail("the peer let this side read " + less_than("its requests") + while_others_waited());
}

void ServerEndpoint::refuse_late_answers() {
  calls_.for_each([this](std::uint32_t slot, ServerCall& call) {
    if (!link_.is_open() || call.state != ServerState::asking || call.part) return;
    if (shared_.awake_ns - call.bulk->asked_ns < kReclaimNs) return;
    refuse(slot, kResourceExhausted, true,
           "the client granted no memory for a response of " + std::to_string(call.bulk->total) + " bytes" +
               while_others_waited());
  });
}

/// Refuses the waiting messages of this stream. The client then ends the stream.
void ServerEndpoint::refuse_messages_of(std::uint32_t stream) {
  calls_.for_each([this, stream](std::uint32_t slot, ServerCall& call) {
    if (!link_.is_open() || !call.waits_for_reader() || call.bulk->stream != stream) return;
    refuse(slot, kResourceExhausted, true,
           "the client has read no message of this stream for " +
               std::to_string(kUnreadStreamNs / 1'000'000'000) + " s while other calls waited for the " +
               std::to_string(call.bulk->total) +
               " bytes of its next message; read the stream faster, end it, or raise the server's "
               "arenaBytes");
  });
}

}  // namespace rdma_rpc::session
