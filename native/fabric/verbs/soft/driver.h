// Determines which of the kernel's software drivers a device has, and the defects of that driver. The probe
// calls this code, and so does the code that makes devices and queue pairs, on the device's thread. No other
// file depends on the driver.
//
//   defect                                        driver      Linux           worked around in
//   a bind is executed again                      soft-RoCE   5.14 and later  rxe.cc
//   a WRITE that is sent again shifts the rest    soft-RoCE   4.8 and later   rxe.cc
//   progress counts as a failed retry             soft-RoCE   4.8 and later   Capabilities::max_write_bytes
//   the requester sleeps through its wake-up      soft-RoCE   4.8 and later   rxe.cc
//   a packet that is too long is sent for ever    soft-RoCE   5.11 and later  rxe.cc
//   a SEND_WITH_INV has the kernel's flag         soft-RoCE   5.14 and later  rxe.cc
//   32 bytes that cross a page are not sent right soft-iWARP  5.3 and later   siw.cc; one_page_read_max
//   completions overtake a READ                   soft-iWARP  5.3 and later   siw.cc
//   a receive without an entry is refused         soft-iWARP  5.3 and later   siw.cc
//   the queue at page 144 is refused              soft-iWARP  5.5 and later   reserved_key.cc
//   data that arrives during accept is forgotten  soft-iWARP  5.3 and later   nudge.cc (the peer's driver)
//
// The Linux version in the table is the one that introduced the driver or its defective part. "And later"
// means that Linux 6.1 has the defect and that no version is known to have fixed it. Therefore the vendor
// number of the driver alone decides. The version of the kernel is not used, because distributions may have
// fixed a defect in any version. (For packets that are too long, 5.11 is the oldest version that was read.)
#pragma once

#include <memory>

#include "fabric/fabric.h"
#include "fabric/verbs/objects.h"
#include "fabric/verbs/soft/workaround.h"

namespace rdma_rpc::fabric::verbs {
class QueuePair;
}

namespace rdma_rpc::fabric::verbs::soft {

enum class Driver : std::uint8_t {
  none,  ///< a NIC
  rxe,   ///< soft-RoCE
  siw,   ///< soft-iWARP
};

Driver driver_of(const ibv_device_attr& attributes);

/// Reduces the capabilities to those that work with such a driver. On all iWARP devices, reduces them also to
/// those that work with a peer that has soft-iWARP.
void restrict_to(Driver driver, bool iwarp, Capabilities* can);

/// The result must be kept as long as the context is used. The result is null when the driver needs no such
/// object.
CqPtr prepare(Driver driver, ibv_context* context);

/// Returns the number of requests that the driver's workaround may post in addition to the user's requests.
std::uint32_t own_sends(Driver driver);

/// Returns what else may have happened when the driver ends a queue pair without a reason, as the end of a
/// sentence. The result is "" when nothing is known.
const char* other_silent_end(Driver driver);

/// Returns null when the queue pair needs no workaround.
std::unique_ptr<Workaround> make_workaround(Driver driver, QueuePair& qp);

}  // namespace rdma_rpc::fabric::verbs::soft
