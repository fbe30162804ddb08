// See load.h for the description.
#include "load.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace rdma_rpc::bench {

namespace ev = session::boundary::ev;
using session::boundary::EvKind;
using session::boundary::SubOp;

namespace {

constexpr std::size_t kSmallBytes = 64;
/// A longer message does not fit a send slot of the default size.
constexpr std::size_t kSlotBytes = 8192;
constexpr std::uint32_t kSmallMethod = 1, kLargeMethod = 2;

struct Shape {
  const char* name;
  /// number of calls in flight, of small messages and of messages that move memory
  std::uint32_t small, large;
  bool reads;  ///< true when the request is large, otherwise the response is
  std::size_t large_bytes;
  bool echoes = false;  ///< true when both are large
};
/// The shapes are indexed by Load.
constexpr Shape kShapes[] = {
    {"pingpong", 1, 0, false, 0},
    {"read", 0, 8, true, std::size_t{1} << 20},
    {"write", 0, 8, false, std::size_t{1} << 20},
    {"beside-read", 1, 1, true, std::size_t{16} << 20},
    {"beside-write", 1, 1, false, std::size_t{16} << 20},
    {"echo-sent", 1, 0, false, 0},
    {"echo-moved", 0, 1, false, 0, true},
};
Shape shape_of(Load load, std::size_t bytes) {
  Shape shape = kShapes[static_cast<std::size_t>(load)];
  if (shape.echoes) shape.large_bytes = bytes;
  return shape;
}
std::size_t small_bytes_of(Load load, std::size_t bytes) {
  return load == Load::echo_sent ? bytes : kSmallBytes;
}

std::uint32_t u32(std::int32_t word) { return static_cast<std::uint32_t>(word); }

/// Sends one request or response of the load. `block` is the memory of a large message.
void send(End& end, const Shape& shape, SubOp op, std::uint32_t call, std::size_t small_bytes, bool large,
          memory::BlockId block) {
  const bool request = op == SubOp::request;
  const std::uint32_t method = !request ? 0 : large ? kLargeMethod : kSmallMethod;
  const bool carries = large && (shape.echoes || shape.reads == request);
  const bool has_reply_buffer = large && request && !shape.reads && !shape.echoes;
  if (!carries && !has_reply_buffer) {
    const bool fits = small_bytes <= kSlotBytes;
    const std::uint32_t slot = fits ? end.take_slot() : end.take_long_slot(op, call);
    return end.stage(op, call, method, slot, small_bytes);
  }
  session::BulkSubmission bulk;
  bulk.op = op;
  bulk.call = call;
  bulk.method = method;
  bulk.slot = end.take_slot();
  if (carries) bulk.gather_entries.push_back(end.gather_entry_of(block, shape.large_bytes));
  if (has_reply_buffer) bulk.reply_buffer = block;
  end.submit_bulk(std::move(bulk));
}

/// Releases the memory of a message that arrived in the arena with an event, once it has been checked.
void release_block(End& end, const std::int32_t* words) {
  if (words[ev::region] > 0) end.context().arena().release(u32(words[ev::region]));
}

}  // namespace

std::optional<Load> load_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kShapes); ++i) {
    if (name == kShapes[i].name) return static_cast<Load>(i);
  }
  return std::nullopt;
}

void serve(End& end, Load load, std::size_t bytes) {
  const Shape shape = shape_of(load, bytes);
  const std::size_t small_bytes = small_bytes_of(load, bytes);
  const memory::BlockId block =
      shape.large != 0 && !shape.reads ? end.make_block(shape.large_bytes) : memory::kNoBlock;
  const bool never = false;
  end.run(
      [&](const std::int32_t* words) {
        const auto kind = static_cast<EvKind>(words[ev::kind]);
        if (kind == EvKind::session_down) fail("the session of the server is down: " + end.session().error());
        if (kind != EvKind::request) return;
        release_block(end, words);
        const bool large = u32(words[ev::method]) == kLargeMethod;
        send(end, shape, SubOp::response, u32(words[ev::call]), small_bytes, large, block);
      },
      never);
  fail("unreachable");
}

Timing ask(End& end, Load load, std::size_t bytes, std::size_t calls) {
  const Shape shape = shape_of(load, bytes);
  const std::size_t small_bytes = small_bytes_of(load, bytes);
  const std::uint32_t in_flight = shape.small + shape.large;
  // Small calls come first. If the load has any small calls, only those are counted.
  const auto is_large = [&](std::uint32_t call) { return call >= shape.small; };
  const auto counts = [&](std::uint32_t call) { return shape.small == 0 || !is_large(call); };
  std::vector<memory::BlockId> blocks(in_flight, memory::kNoBlock);
  for (std::uint32_t call = shape.small; call < in_flight; ++call)
    blocks[call] = end.make_block(shape.large_bytes);
  std::vector<std::uint64_t> begun(in_flight);
  std::size_t started = 0;
  std::uint32_t open = 0;
  bool done = false;
  Timing timing;
  timing.call_ns.reserve(calls);
  const auto start = [&](std::uint32_t call, std::uint64_t begin_ns) {
    begun[call] = begin_ns;
    if (counts(call)) ++started;
    ++open;
    send(end, shape, SubOp::request, call, small_bytes, is_large(call), blocks[call]);
  };
  timing.begin_ns = now_ns();
  for (std::uint32_t call = 0; call < in_flight && (started < calls || !counts(call)); ++call)
    start(call, timing.begin_ns);
  end.run(
      [&](const std::int32_t* words) {
        const auto kind = static_cast<EvKind>(words[ev::kind]);
        if (kind == EvKind::failed) fail("a call failed: " + end.session().error());
        if (kind != EvKind::settled) return;
        if (words[ev::method] != 0) fail("a call was refused, status " + std::to_string(words[ev::method]));
        const std::uint32_t call = u32(words[ev::call]);
        --open;
        release_block(end, words);
        const std::uint64_t ended_ns = now_ns();
        if (counts(call)) {
          timing.end_ns = ended_ns;
          timing.call_ns.push_back(ended_ns - begun[call]);
        }
        if (is_large(call)) timing.bytes += shape.large_bytes;
        if (shape.large == 0) timing.bytes += small_bytes;
        // The clock is read once per call, as in perftest: a call begins when the call before it has ended.
        // The calls beside the counted calls continue until the counted calls have ended.
        if (counts(call) ? started < calls : timing.call_ns.size() < calls) start(call, ended_ns);
        done = timing.call_ns.size() == calls && open == 0;
      },
      done);
  timing.end_ns = std::max(timing.end_ns, timing.begin_ns + 1);
  return timing;
}

}  // namespace rdma_rpc::bench
