// See shared.h.
#include "session/shared.h"

#include <utility>

namespace rdma_rpc::session {

Shared::Shared(Resources resources, const ContextOptions& options)
    : device(std::move(resources.device)),
      cq(std::move(resources.cq)),
      exposure(options.exposure),
      slot_bytes(options.slot_bytes),
      segmented_bytes(*options.segmented_bytes),
      counters_start(options.counters_start),
      shared_from(options.shared_from),
      arena(*device, options.arena),
      mr_cache(*device, options.mr_cache),
      windows(*device),
      arrays(options.send_slots),
      slots(std::move(resources.slot_memory), std::move(resources.slot_region), options.send_slots,
            SendSlots::send_stride_for(options.slot_bytes), SendSlots::long_count_for(segmented_bytes),
            arrays.control.data(), arrays.free_slots.data(), arrays.session_slots.data()),
      events(arrays.events.data()),
      page(std::move(resources.page)),
      latencies(page->latencies()),
      event_rings(page->events()),
      flow(device->capabilities(), options.read_bytes_max),
      short_bytes(arrays.control[boundary::ctl::short_bytes]),
      tokens(options.counters_start),
      receive_pool(*device),
      shared_receives(*device, *cq, SendSlots::stride_for(options.slot_bytes)) {
  mr_cache.on_evict([this](std::uint64_t key) {
    boundary::Event event = boundary::Event::of(boundary::EvKind::evicted);
    event.set(boundary::ev::key_low, key & 0xffffffff);
    event.set(boundary::ev::key_high, key >> 32);
    events.emit(event);
  });
}

void Shared::leave_device() {
  windows.clear();
  mr_cache.clear();
  slots.leave_device();
  arena.leave_device();
  shared_receives.leave_device();
  cq.reset();
  device.reset();
}

}  // namespace rdma_rpc::session
