// See load.h.
#include "load.h"

#include <cstring>

namespace rdma_rpc::bench {

namespace ev = session::boundary::ev;
using session::boundary::EvKind;
using session::boundary::SubOp;

namespace {

constexpr std::size_t kSmallBytes = 64;
constexpr std::size_t kBulkBytes = std::size_t{1} << 20;
constexpr std::uint32_t kMethod = 1;

std::uint32_t u32(std::int32_t word) { return static_cast<std::uint32_t>(word); }

/// One request or response of the load, `block` being the memory that its bulk part uses.
void send(End& end, Load load, SubOp op, std::uint32_t call, memory::BlockId block) {
  const std::uint32_t slot = end.take_slot();
  const bool request = op == SubOp::request;
  const std::uint32_t method = request ? kMethod : 0;
  const bool carries = load == (request ? Load::read : Load::write);
  const bool has_sink = request && load == Load::write;
  if (!carries && !has_sink) return end.stage(op, call, method, slot, kSmallBytes);
  session::BulkSubmission bulk;
  bulk.op = op;
  bulk.call = call;
  bulk.method = method;
  bulk.slot = slot;
  if (carries) bulk.pieces.push_back(end.piece_of(block, kBulkBytes));
  if (has_sink) bulk.sink = block;
  end.submit_bulk(std::move(bulk));
}

/// What arrived in the arena with an event is free again once it has been looked at.
void release_block(End& end, const std::int32_t* words) {
  if (words[ev::region] > 0) end.context().arena().release(u32(words[ev::region]));
}

}  // namespace

std::optional<Load> load_of(std::string_view name) {
  if (name == "pingpong") return Load::pingpong;
  if (name == "read") return Load::read;
  if (name == "write") return Load::write;
  return std::nullopt;
}

std::uint32_t calls_in_flight(Load load) { return load == Load::pingpong ? 1 : 8; }
std::size_t bytes_per_call(Load load) { return load == Load::pingpong ? kSmallBytes : kBulkBytes; }

void serve(End& end, Load load) {
  const memory::BlockId block = end.make_block(kBulkBytes);
  const bool never = false;
  end.run(
      [&](const std::int32_t* words) {
        const auto kind = static_cast<EvKind>(words[ev::kind]);
        if (kind == EvKind::session_down) fail("the session of the server is down: " + end.session().error());
        if (kind != EvKind::request) return;
        release_block(end, words);
        send(end, load, SubOp::response, u32(words[ev::call]), block);
      },
      never);
  fail("unreachable");
}

Timing ask(End& end, Load load, std::size_t calls) {
  const std::uint32_t in_flight = calls_in_flight(load);
  std::vector<memory::BlockId> blocks(in_flight);
  if (load != Load::pingpong) {
    for (memory::BlockId& block : blocks) block = end.make_block(kBulkBytes);
  }
  std::vector<std::uint64_t> begun(in_flight);
  std::size_t started = 0;
  bool done = false;
  Timing timing;
  timing.call_ns.reserve(calls);
  const auto start = [&](std::uint32_t call, std::uint64_t begin_ns) {
    begun[call] = begin_ns;
    ++started;
    send(end, load, SubOp::request, call, blocks[call]);
  };
  timing.begin_ns = now_ns();
  for (std::uint32_t call = 0; call < in_flight && started < calls; ++call) start(call, timing.begin_ns);
  end.run(
      [&](const std::int32_t* words) {
        const auto kind = static_cast<EvKind>(words[ev::kind]);
        if (kind == EvKind::failed) fail("a call failed: " + end.session().error());
        if (kind != EvKind::settled) return;
        if (words[ev::method] != 0) fail("a call was refused, status " + std::to_string(words[ev::method]));
        const std::uint32_t call = u32(words[ev::call]);
        timing.end_ns = now_ns();
        timing.call_ns.push_back(timing.end_ns - begun[call]);
        release_block(end, words);
        // One look at the clock per call, as perftest has it: a call begins where the one before it ended.
        if (started < calls) start(call, timing.end_ns);
        done = timing.call_ns.size() == calls;
      },
      done);
  return timing;
}

}  // namespace rdma_rpc::bench
