// See end.h for the description.
#include "end.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fabric/verbs_loader.h"

namespace rdma_rpc::bench {

namespace ctl = session::boundary::ctl;
namespace ev = session::boundary::ev;
namespace sub = session::boundary::sub;

namespace {
/// The clock is read only once per this number of iterations, because reading it costs more than a poll that
/// finds nothing.
constexpr std::uint32_t kTurnsPerClock = 8;
/// A device that is silent for this time has failed.
constexpr int kSilenceMs = 30'000;
constexpr std::size_t kAddressMax = 512;
}  // namespace

void fail(const std::string& why) {
  std::fprintf(stderr, "verbs_session: %s\n", why.c_str());
  std::exit(1);
}

std::uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

End::End(const EndOptions& options) : options_(options) {
  std::string error;
  fabric::VerbsOptions which;
  which.device = options.device;
  std::shared_ptr<fabric::Device> device = fabric::open_verbs_device(which, &error);
  if (device == nullptr) fail(error);
  session::ContextOptions context;
  context.exposure = options.exposure;
  context_ = session::Context::open(std::move(device), context, &error);
  if (context_ == nullptr) fail(error);
  session::SessionOptions session;
  session.client = options.client;
  session.peer_takes_segments = true;
  const std::int64_t number = context_->create_session(session, &error);
  if (number < 0) fail(error);
  number_ = static_cast<std::uint32_t>(number);
  connect();
}

void End::connect() {
  const std::vector<std::byte> own = session().local_address();
  std::array<std::byte, kAddressMax> peer;
  if (::send(options_.socket, own.data(), own.size(), 0) < 0) fail("the other end is gone");
  const ssize_t size = ::recv(options_.socket, peer.data(), peer.size(), 0);
  if (size <= 0) fail("the other end is gone");
  const std::string why = session().connect({peer.data(), static_cast<std::size_t>(size)});
  if (!why.empty()) fail("cannot connect: " + why);
}

bool End::turn(const OnEvent& on_event) {
  if (idle_turns_++ % kTurnsPerClock == 0) now_ns_ = now_ns();
  const std::uint32_t count = context_->progress(now_ns_);
  if (count == 0 && !context_->unfinished()) return false;
  if (count != 0) {
    idle_turns_ = 0;
    context_->begin_callback();
    for (std::uint32_t i = 0; i < count; ++i) on_event(context_->events() + i * ev::words);
  }
  const bool more = context_->finish_turn();
  return count != 0 || more;
}

void End::sleep() {
  if (context_->unfinished() || context_->has_events() || !context_->cq().arm()) return;
  pollfd wake{context_->cq().fd(), POLLIN, 0};
  if (::poll(&wake, 1, kSilenceMs) == 0) fail("nothing has come for 30 s");
  context_->cq().acknowledge();
  idle_turns_ = 0;
}

void End::run(const OnEvent& on_event, const bool& done) {
  context_->flush();
  while (!done) {
    if (!turn(on_event) && options_.wait == Wait::events) sleep();
  }
}

std::uint32_t End::take_slot() {
  std::int32_t& free = context_->control()[ctl::free_slots];
  if (free == 0) fail("no free send slot");
  return static_cast<std::uint32_t>(context_->free_slots()[--free]);
}

std::uint32_t End::take_long_slot(session::boundary::SubOp op, std::uint32_t call) {
  const bool request = op == session::boundary::SubOp::request;
  const std::int32_t slot = session().take_long_slot(request ? std::nullopt : std::optional(call));
  if (slot < 0) fail("no long send slot");
  return static_cast<std::uint32_t>(slot);
}

void End::stage(session::boundary::SubOp op, std::uint32_t call, std::uint32_t method, std::uint32_t slot,
                std::size_t message_bytes) {
  std::int32_t& staged = context_->control()[ctl::staged];
  std::int32_t* words = context_->submissions() + staged++ * sub::words;
  std::memset(words, 0, sub::words * sizeof *words);
  words[sub::op] = static_cast<std::int32_t>(op);
  words[sub::session] = static_cast<std::int32_t>(number_);
  words[sub::call] = static_cast<std::int32_t>(call);
  words[sub::method] = static_cast<std::int32_t>(method);
  words[sub::slot] = static_cast<std::int32_t>(slot);
  words[sub::message_bytes] = static_cast<std::int32_t>(message_bytes);
}

void End::submit_bulk(session::BulkSubmission submission) {
  const std::int32_t token = session().submit_bulk(std::move(submission));
  if (token <= 0) fail("a bulk message is refused, reason " + std::to_string(-token));
}

memory::BlockId End::make_block(std::size_t bytes) {
  const memory::BlockId block = context_->arena().alloc(bytes);
  if (block == memory::kNoBlock) fail("the arena has no memory");
  std::memset(context_->arena().at(block).data, 1, bytes);
  return block;
}

session::GivenGatherEntry End::gather_entry_of(memory::BlockId block, std::size_t bytes) {
  return {.data = context_->arena().at(block).data, .bytes = bytes};
}

}  // namespace rdma_rpc::bench
