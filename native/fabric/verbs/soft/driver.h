// Which of the kernel's software drivers a device has, and the defects of that driver. Called by the probe
// and when devices and queue pairs are made; nothing else in the project asks for a driver. On the device's
// thread.
//
//   defect                                        driver      Linux           worked around in
//   a bind is executed again                      soft-RoCE   5.14 and later  rxe.cc
//   a WRITE that is sent again shifts the rest    soft-RoCE   4.8 and later   rxe.cc
//   progress counts as a failed retry             soft-RoCE   4.8 and later   Capabilities::max_write_bytes
//   the requester sleeps through its wake-up      soft-RoCE   4.8 and later   rxe.cc
//   a SEND_WITH_INV has the kernel's flag         soft-RoCE   5.14 and later  rxe.cc
//   32 bytes that cross a page are not sent right soft-iWARP  5.3 and later   siw.cc; one_page_read_max
//   completions overtake a READ                   soft-iWARP  5.3 and later   siw.cc
//   a receive without an entry is refused         soft-iWARP  5.3 and later   siw.cc
//   the queue at page 144 is refused              soft-iWARP  5.5 and later   reserved_key.cc
//   data that arrives during accept is forgotten  soft-iWARP  5.3 and later   nudge.cc (the peer's driver)
//
// The first version is the one that introduced the driver, or its defective part. "And later" means that
// Linux 6.1 has the defect, and that no version is known to have fixed it. The driver is therefore recognised
// by its vendor number alone; the kernel's version is not used, since it says nothing about fixes of a
// distribution.
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

/// Reduces the capabilities to what such a driver really supports. For all of iWARP also to what a peer with
/// soft-iWARP supports.
void restrict_to(Driver driver, bool iwarp, Capabilities* can);

/// The result must be kept as long as the context is used; null when nothing has to be kept.
CqPtr prepare(Driver driver, ibv_context* context);

/// Number of requests that its workaround may have on the device in addition to the user's.
std::uint32_t own_sends(Driver driver);

/// Returns null when the queue pair needs none.
std::unique_ptr<Workaround> make_workaround(Driver driver, QueuePair& qp);

}  // namespace rdma_rpc::fabric::verbs::soft
