// See audit.h.
#include "session/sides/audit.h"

namespace rdma_rpc::session::test {

void audit(Side& side, const std::string& name, const fabric::DeviceCounters& before) {
  const auto expect = [&](const char* what, std::uint64_t is, std::uint64_t should) {
    if (is == should) return;
    side.ledger.violation(name + ": " + what + " " + std::to_string(is) + ", not " + std::to_string(should));
  };
  expect("sessions", side.context->session_count(), 0);
  expect("free send slots", side.free_slots(), side.context->slots().count());
  expect("free long slots", side.context->slots().free_long(), side.context->slots().count_long());
  expect("buffers of reassembled messages", side.context->reassembled_messages_free(), kReassembledMessages);
  expect("buffers of short messages", side.context->short_messages_free(), kShortMessages);
  const memory::ArenaCounters arena = side.context->arena().counters();
  expect("leased blocks", arena.blocks_leased, 0);
  expect("stale block numbers", arena.stale, 0);
  expect("pinned registrations", side.context->mr_cache().counters().pinned, 0);
  expect("memory waiters", side.context->memory_waiters(), 0);
  expect("bytes of READs under way", side.context->flow().read_bytes(), 0);
  expect("sessions with data to move", side.context->flow().waits() ? 1 : 0, 0);
  side.context.reset();
  const fabric::DeviceCounters left = side.device->counters();
  expect("queue pairs", left.queue_pairs, before.queue_pairs);
  expect("shared receive queues", left.receive_queues, before.receive_queues);
  expect("memory regions", left.memory_regions, before.memory_regions);
  expect("memory windows", left.memory_windows, before.memory_windows);
  expect("registered bytes", left.memory_bytes, before.memory_bytes);
  expect("open descriptors", left.open_fds, before.open_fds);
}

void audit_receives(Side& side, std::uint32_t session, const std::string& name) {
  const Session* open = side.context->find(session);
  if (open == nullptr || side.is_down(session) || side.ledger.open() != 0 || side.unanswered() != 0) return;
  if (const std::uint32_t kept = open->receives().kept(); kept != 0) {
    side.ledger.violation(name + ": receives not posted again " + std::to_string(kept) + ", not 0");
  }
}

}  // namespace rdma_rpc::session::test
