// See driver.h.
#include "fabric/verbs/soft/driver.h"

#include "fabric/verbs/soft/reserved_key.h"
#include "fabric/verbs/soft/rxe.h"
#include "fabric/verbs/soft/siw.h"

namespace rdma_rpc::fabric::verbs::soft {
namespace {

constexpr std::uint32_t kRxeVendor = 0xffffff, kSiwVendor = 0x626d74;
/// Soft-RoCE counts each lost packet of a WRITE as a retry, and resets the count only when an acknowledgement
/// comes. Soft-RoCE requests an acknowledgement with the last packet of each WRITE, and with every 65th
/// packet.
constexpr std::uint64_t kRxeWriteBytes = 64 * 1024;

}  // namespace

Driver driver_of(const ibv_device_attr& attributes) {
  if (attributes.vendor_id == kRxeVendor) return Driver::rxe;
  return attributes.vendor_id == kSiwVendor ? Driver::siw : Driver::none;
}

void restrict_to(Driver driver, bool iwarp, Capabilities* can) {
  if (driver == Driver::rxe) {
    can->max_write_bytes = kRxeWriteBytes;
    can->exact_windows = false;
  }
  if (driver == Driver::siw) can->names_refusals = can->checks_read_rights = false;
  // The limit is for a peer with soft-iWARP, which sends the bytes of our READs. This side cannot know which
  // driver the peer has, so the limit holds on all of iWARP.
  if (iwarp) can->one_page_read_max = kShortEntryBytes;
}

CqPtr prepare(Driver driver, ibv_context* context) {
  return driver == Driver::siw ? cover_reserved_key(context) : CqPtr();
}

std::uint32_t own_sends(Driver driver) { return driver == Driver::rxe ? Rxe::kRingsMax : 0; }

const char* other_silent_end(Driver driver) {
  if (driver != Driver::rxe) return "";
  return ", or soft-RoCE has rejected a request of the peer, as when the network reorders packets and a READ "
         "arrives again after its memory was released";
}

std::unique_ptr<Workaround> make_workaround(Driver driver, QueuePair& qp) {
  switch (driver) {
    case Driver::rxe:
      return std::make_unique<Rxe>(qp);
    case Driver::siw:
      return std::make_unique<Siw>();
    case Driver::none:
      break;
  }
  return nullptr;
}

}  // namespace rdma_rpc::fabric::verbs::soft
