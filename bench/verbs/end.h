// One end of the benchmark: a context on a real device with one session, and the loop that drives it, as the
// addon does for JS. bench/verbs/session.cc uses it in both processes, each on its only thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "session/context.h"

namespace rdma_rpc::bench {

/// Prints the reason on stderr and ends the process, because a measurement is not possible then.
[[noreturn]] void fail(const std::string& why);
std::uint64_t now_ns();

/// The behaviour of an idle end. It polls again at once, or sleeps until the device wakes it.
enum class Wait : std::uint8_t { poll, events };

struct EndOptions {
  std::string device;
  bool client = true;
  Wait wait = Wait::poll;
  session::Exposure exposure = session::Exposure::window;
  /// A packet socket to the other end, through which address blobs are exchanged.
  int socket = -1;
};

class End {
 public:
  /// The session connects while run() is active, so submissions before that wait.
  explicit End(const EndOptions& options);
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  using OnEvent = std::function<void(const std::int32_t* words)>;
  /// Runs iterations until `done` is true; each event is passed to `on_event`, which may submit.
  void run(const OnEvent& on_event, const bool& done);

  /// Returns a free send slot with room for a small message.
  std::uint32_t take_slot();
  /// Returns a slot for a message that is sent in segments. For an answer, `call` is the call that it
  /// answers.
  std::uint32_t take_long_slot(session::boundary::SubOp op, std::uint32_t call);
  void stage(session::boundary::SubOp op, std::uint32_t call, std::uint32_t method, std::uint32_t slot,
             std::size_t message_bytes);
  void submit_bulk(session::BulkSubmission submission);
  /// Returns a block of the arena, filled with a pattern.
  memory::BlockId make_block(std::size_t bytes);
  session::GivenGatherEntry gather_entry_of(memory::BlockId block, std::size_t bytes);
  session::Context& context() { return *context_; }
  session::Session& session() { return *context_->find(number_); }

 private:
  bool turn(const OnEvent& on_event);
  void sleep();
  void connect();

  EndOptions options_;
  std::unique_ptr<session::Context> context_;
  std::uint32_t number_ = 0;
  std::uint64_t now_ns_ = 0;
  std::uint32_t idle_turns_ = 0;
};

}  // namespace rdma_rpc::bench
