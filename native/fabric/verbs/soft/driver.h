// Which of the kernel's drivers in software a device has, and what that driver gets wrong. Called by the
// probe and when devices and queue pairs are made; nothing else in the project asks for a driver. On the
// device's thread.
//
//   what goes wrong                               driver      Linux           put right in
//   a bind is carried out again                   soft-RoCE   5.14 and later  rxe.cc
//   a WRITE that is sent again shifts the rest    soft-RoCE   4.8 and later   rxe.cc
//   progress counts as a failed retry             soft-RoCE   4.8 and later   Capabilities::max_write_bytes
//   the requester sleeps through its wake-up      soft-RoCE   4.8 and later   rxe.cc
//   a SEND_WITH_INV has the kernel's flag         soft-RoCE   5.14 and later  rxe.cc
//   32 bytes that cross a page are not sent right soft-iWARP  5.3 and later   siw.cc; one_page_read_max
//   completions overtake a READ                   soft-iWARP  5.3 and later   siw.cc
//   a receive without an entry is refused         soft-iWARP  5.3 and later   siw.cc
//   the queue at page 144 is refused              soft-iWARP  5.5 and later   reserved_key.cc
//   what arrives while it accepts is forgotten    soft-iWARP  5.3 and later   nudge.cc (the peer's driver)
//
// The first version is the one that brought the driver, or the part of it that is wrong; "and later": Linux
// 6.1 has it, and no version is known that has put it right. So the driver is told by its vendor number, and
// the kernel's version, which says nothing about what a distribution has put right, is not asked.
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

/// What such a driver can do less than it says. For all of iWARP also what a peer with soft-iWARP cannot.
void restrict_to(Driver driver, bool iwarp, Capabilities* can);

/// To be kept as long as the context is used; null: nothing has to be.
CqPtr prepare(Driver driver, ibv_context* context);

/// Requests that its workaround may have with the device beside those of the queue pair's user.
std::uint32_t own_sends(Driver driver);

/// Null: the queue pair needs none.
std::unique_ptr<Workaround> make_workaround(Driver driver, QueuePair& qp);

}  // namespace rdma_rpc::fabric::verbs::soft
