// The end of calls that a peer keeps waiting (peer_watch.h). It has minutes, or what the deadlines of the
// calls leave; while other calls wait for memory a peer that is stopped, or much too slow, has seconds. The
// latter is called by MemoryShortage, which chooses the session. See server_endpoint.h.
#include <algorithm>
#include <string>

#include "session/server/server_endpoint.h"

namespace rdma_rpc::session {

namespace {
constexpr std::uint32_t kDeadlineExceeded = 4;
constexpr std::uint32_t kResourceExhausted = 8;

std::string within(std::uint64_t ns) { return " within " + std::to_string(ns / 1'000'000'000) + " s"; }

/// What a peer should have moved, by AnswersUnderWay and ReadsUnderWay.
std::string less_than(const char* of) {
  return "less than " + std::to_string(kGiveUpBytes) + " bytes, or than a " + std::to_string(kBulkPeriods) +
         "th of " + of;
}
std::string while_others_waited() {
  return within(kGiveUpNs) +
         ", and other calls waited for that memory; raise the server's arenaBytes, or ask for less at once";
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
                           "the deadline passed while a request of " + total + " bytes was READ");
    case ServerState::writing:
      return stop_writing(slot, kDeadlineExceeded,
                          "the deadline passed while a response of " + total + " bytes was sent");
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

/// Requests whose memory has been taken back may still have READs under way.
std::uint64_t ServerEndpoint::requests_late_ns() {
  if (watch_.reads().late_ns(shared_.awake_ns) == 0) return 0;
  bool keep = false;
  calls_.for_each([&keep](std::uint32_t, const ServerCall& call) {
    keep = keep || (call.state == ServerState::fetching && call.bulk->block != memory::kNoBlock);
  });
  return keep ? watch_.reads().late_ns(shared_.awake_ns) : 0;
}

/// How long the client has been asked for memory for the answer that waits for it the longest.
std::uint64_t ServerEndpoint::asked_ns() {
  std::uint64_t longest = 0;
  calls_.for_each([&](std::uint32_t, const ServerCall& call) {
    if (call.state == ServerState::asking && !call.part)
      longest = std::max(longest, shared_.awake_ns - call.bulk->asked_ns);
  });
  return longest;
}

/// The stream that has gone without a grant for longest, if that is too long while others wait for memory.
UnreadStreams::Longest ServerEndpoint::unread() const {
  const UnreadStreams::Longest longest = watch_.unread().longest(shared_.awake_ns);
  return longest.ns >= kUnreadStreamNs ? longest : UnreadStreams::Longest{};
}

void ServerEndpoint::give_memory_up() {
  if (requests_late_ns() >= kGiveUpNs) stop_late_requests();
  if (!link_.is_open()) return;
  // What costs calls goes before what costs the session.
  if (asked_ns() >= kGiveUpNs) return refuse_late_answers();
  if (const UnreadStreams::Longest longest = unread(); longest.ns != 0)
    return refuse_messages_of(longest.stream);
  const bool late = watch_.answers().late_ns(shared_.awake_ns) >= kGiveUpNs;
  if (late || (finishing_.any() && link_.no_credit_ns() >= kGiveUpNs))
    link_.fail("the peer has taken " + less_than("its answers") + "," + while_others_waited());
}

/// Where a device may still write to their memory, only the end of the session gives it back.
void ServerEndpoint::stop_late_requests() {
  bool kept = false;
  const auto holds = [](const ServerCall& call) {
    return call.state == ServerState::fetching && call.bulk->block != memory::kNoBlock;
  };
  calls_.for_each([&](std::uint32_t slot, ServerCall& call) {
    if (!holds(call)) return;
    if (!call.cancelled) {
      stop_fetching(
          slot, kResourceExhausted,
          "the client let the server READ " + less_than("its requests") + "," + while_others_waited());
    }
    kept = kept || holds(call);
  });
  if (kept)
    link_.fail("the peer let this side READ " + less_than("its requests") + "," + while_others_waited());
}

void ServerEndpoint::refuse_late_answers() {
  calls_.for_each([this](std::uint32_t slot, ServerCall& call) {
    if (!link_.is_open() || call.state != ServerState::asking || call.part) return;
    if (shared_.awake_ns - call.bulk->asked_ns < kGiveUpNs) return;
    refuse(slot, kResourceExhausted, true,
           "the client granted no memory for a response of " + std::to_string(call.bulk->total) + " bytes" +
               while_others_waited());
  });
}

/// The client ends the stream when it hears of this.
void ServerEndpoint::refuse_messages_of(std::uint32_t stream) {
  calls_.for_each([this, stream](std::uint32_t slot, ServerCall& call) {
    if (!link_.is_open() || !call.waits_for_reader() || call.bulk->stream != stream) return;
    refuse(slot, kResourceExhausted, true,
           "the client has read no message of this stream for " +
               std::to_string(kUnreadStreamNs / 1'000'000'000) + " s, and other calls waited for the " +
               std::to_string(call.bulk->total) +
               " bytes that its next one keeps; read the stream faster, leave it, or raise the server's "
               "arenaBytes");
  });
}

}  // namespace rdma_rpc::session
