// What a peer keeps of the arena while other calls wait for memory: a peer that is stopped, or much too slow,
// loses it after seconds, where overdue.cc gives it minutes. Called by Context, which says when memory is
// short and chooses the session (memory_wait.cc). See server_half.h.
#include <algorithm>
#include <string>

#include "session/server/server_half.h"

namespace rdma_rpc::session {

namespace {
constexpr std::uint32_t kResourceExhausted = 8;

/// What a peer should have moved, by AnswersUnderWay and ReadsUnderWay.
std::string less_than(const char* of) {
  return "less than " + std::to_string(kGiveUpBytes) + " bytes, or than a " + std::to_string(kBulkPeriods) +
         "th of " + of;
}
std::string while_others_waited() {
  return " within " + std::to_string(kGiveUpNs / 1'000'000'000) +
         " s, and other calls waited for that memory; raise the server's arenaBytes, or ask for less at once";
}
}  // namespace

std::uint64_t ServerHalf::late_ns() {
  const std::uint64_t credits_ns = keeps_finished() ? link_.no_credit_ns() : 0;
  return std::max(
      {requests_late_ns(), asked_ns(), unread().ns, answers_.late_ns(shared_.awake_ns), credits_ns});
}

/// Requests whose memory has been taken back may still have READs under way.
std::uint64_t ServerHalf::requests_late_ns() {
  if (reads_.late_ns(shared_.awake_ns) == 0) return 0;
  bool keep = false;
  calls_.for_each([&keep](std::uint32_t, const ServerCall& call) {
    keep = keep || (call.state == ServerState::fetching && call.bulk->block != memory::kNoBlock);
  });
  return keep ? reads_.late_ns(shared_.awake_ns) : 0;
}

/// How long the client has been asked for memory for the answer that waits for it the longest.
std::uint64_t ServerHalf::asked_ns() {
  std::uint64_t longest = 0;
  calls_.for_each([&](std::uint32_t, const ServerCall& call) {
    if (call.state == ServerState::asking && !call.part)
      longest = std::max(longest, shared_.awake_ns - call.bulk->asked_ns);
  });
  return longest;
}

/// The stream that has gone without a grant for longest, if that is too long while others wait for memory.
UnreadStreams::Longest ServerHalf::unread() const {
  const UnreadStreams::Longest longest = unread_.longest(shared_.awake_ns);
  return longest.ns >= kUnreadStreamNs ? longest : UnreadStreams::Longest{};
}

/// Answers that have been written and whose last frame has not gone: it waits for a credit.
bool ServerHalf::keeps_finished() const {
  return std::any_of(finishing_.begin(), finishing_.end(), [](const auto& bulk) { return bulk != nullptr; });
}

void ServerHalf::give_memory_up() {
  if (requests_late_ns() >= kGiveUpNs) stop_late_requests();
  if (!link_.is_open()) return;
  // What costs calls goes before what costs the session.
  if (asked_ns() >= kGiveUpNs) return refuse_late_answers();
  if (const UnreadStreams::Longest longest = unread(); longest.ns != 0)
    return refuse_messages_of(longest.stream);
  const bool late = answers_.late_ns(shared_.awake_ns) >= kGiveUpNs;
  if (late || (keeps_finished() && link_.no_credit_ns() >= kGiveUpNs))
    link_.fail("the peer has taken " + less_than("its answers") + "," + while_others_waited());
}

/// Where a device may still write to their memory, only the end of the session gives it back.
void ServerHalf::stop_late_requests() {
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

void ServerHalf::refuse_late_answers() {
  calls_.for_each([this](std::uint32_t slot, ServerCall& call) {
    if (!link_.is_open() || call.state != ServerState::asking || call.part) return;
    if (shared_.awake_ns - call.bulk->asked_ns < kGiveUpNs) return;
    refuse(slot, kResourceExhausted, true,
           "the client granted no memory for a response of " + std::to_string(call.bulk->total) + " bytes" +
               while_others_waited());
  });
}

/// The client ends the stream when it hears of this.
void ServerHalf::refuse_messages_of(std::uint32_t stream) {
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
