// Implements one end of a test: a device, a context on the device, and code that acts in place of JS. That
// code reads events and stages submissions exactly as runtime/native/native.ts describes. A Side can be
// client and server at once, with any number of sessions of each kind. This code runs on the test's thread.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fabric/sim/sim.h"
#include "session/context.h"
#include "session/sides/ledger.h"

namespace rdma_rpc::session::test {

class Side {
 public:
  Side(Ledger& ledger, std::shared_ptr<fabric::Device> device, const ContextOptions& options);
  ~Side();

  /// Opens a session and returns its number. When the session is refused, returns 0 and fails the test.
  std::uint32_t open(const SessionOptions& options);
  Session& session(std::uint32_t number) { return *context->find(number); }

  /// Submits a call. Returns its id in the ledger, or 0 when no call slot or send slot is free.
  std::uint64_t start(std::uint32_t session, const CallSpec& spec);
  void cancel(std::uint64_t id, boundary::Reason reason = boundary::Reason::cancelled);
  /// Answers a waiting request (Answer::later). Returns false when no request waits, or no send slot is free.
  bool answer(std::size_t index = 0);
  std::size_t unanswered() const { return pending_.size(); }
  /// Returns the call word of a waiting request.
  std::uint32_t unanswered_call(std::size_t index) const { return pending_[index].call; }
  void flush() { context->flush(); }

  /// Runs one iteration of the event loop. Returns true when something happened, or when there is more work.
  bool turn(std::uint64_t now_ns);
  /// Writes off the calls in progress, because the side's process has been killed.
  void forget();
  /// Releases every block that the side's JS part still holds.
  void release_blocks();
  std::uint32_t free_slots() const { return context->slots().free(); }
  bool is_down(std::uint32_t session) const { return down_.contains(session); }
  bool is_up(std::uint32_t session) const { return up_.contains(session); }
  std::string why_down(std::uint32_t session) const { return is_down(session) ? down_.at(session) : ""; }

  Ledger& ledger;
  std::shared_ptr<fabric::Device> device;
  std::unique_ptr<Context> context;
  int cancelled_events = 0, slots_free_events = 0;
  int reassembled_messages = 0;  ///< number of messages that came in segments
  int short_messages = 0;        ///< number of messages read in the buffers that all sessions share
  /// Parts that wait until the application needs them, by session and call. While `reads` is true, the
  /// application needs them at once.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> held_back;
  bool reads = true;
  void want_parts() {
    for (const auto& [number, call] : std::exchange(held_back, {})) {
      if (Session* open = context->find(number)) open->want(call);
    }
  }

  /// While this is false, the code in place of JS reads requests and responses but keeps their blocks.
  bool release_answers = true;
  /// Responses in arena memory are charged to their session, like responses that JS encodes there.
  bool owned_answers = false;

 private:
  struct Pending {
    std::uint32_t session, call;
    Descriptor descriptor;
  };
  struct Buffer {
    std::vector<std::byte> bytes;
    std::uint64_t key;
  };
  struct Reply {
    std::vector<memory::BlockId> blocks;
  };
  void on_event(const std::int32_t* words);
  void hold_back(std::uint32_t number, std::uint32_t call) {
    held_back.push_back({number, call});
    if (reads) want_parts();
  }
  void on_request(const std::int32_t* words);
  void on_last_event(const std::int32_t* words);
  void on_released(const std::int32_t* words);
  void reclaim(std::uint64_t id, bool request, bool reply_buffer);
  bool respond(const Pending& request);
  std::int32_t take_slot();
  bool stage_long(boundary::SubOp op, std::uint32_t session, std::uint32_t call, std::uint32_t method,
                  std::span<const std::byte> metadata, std::size_t message_bytes, std::uint64_t pattern,
                  std::uint32_t timeout_us);
  void stage(boundary::SubOp op, std::uint32_t session, std::uint32_t call, std::uint32_t method,
             std::uint32_t slot, std::size_t metadata_bytes, std::size_t message_bytes,
             std::uint32_t timeout_us);
  std::vector<GivenGatherEntry> make_gather_entries(std::size_t bytes, std::size_t count,
                                                    std::size_t short_bytes, bool in_arena,
                                                    std::size_t beyond_page, std::uint64_t seed,
                                                    std::vector<memory::BlockId>& blocks,
                                                    std::vector<Watched>* memory,
                                                    memory::OwnerId answer_of = memory::kNobody);
  void move_to_scratch(std::vector<GivenGatherEntry>& gather_entries);
  std::span<const std::byte> message_of(const std::int32_t* words);
  const std::byte* receive_of(const std::int32_t* words);

  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>>
      in_flight_;  ///< for each session, by call slot: the id of the call, or 0
  std::deque<Pending> pending_, wants_slot_;
  std::unordered_map<std::uint32_t, std::uint64_t> tokens_;  ///< for requests
  std::unordered_map<std::uint32_t, Reply> replies_;         ///< for responses
  std::unordered_map<std::uint64_t, std::vector<memory::BlockId>> call_blocks_;
  std::deque<memory::BlockId> kept_;  ///< blocks that are kept to the end and watched
  std::list<Buffer> buffers_;
  std::array<std::byte, boundary::kScratchBytes> scratch_{};
  std::unordered_map<std::uint32_t, std::string> down_;
  std::set<std::uint32_t> up_;
  std::uint64_t next_key_ = 1;
};

}  // namespace rdma_rpc::session::test
