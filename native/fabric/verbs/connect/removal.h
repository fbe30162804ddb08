// What librdmacm does not do for a device that is removed. It opens each device that it is used on and keeps
// it open as long as the process lives, and the kernel removes no device that somebody has open. So one that
// a process has used once would block its removal, and after it a device of the same name, until the process
// ends. Called by connection_manager.cc, on the threads of its devices.
#pragma once

#include <memory>

#include "fabric/verbs/connect/cm_objects.h"

namespace rdma_rpc::fabric::verbs {

/// `anchor`, an id that is bound to a device, has heard that the device is removed: it goes, and what
/// librdmacm has open of that device no longer is that device. Its two descriptors stay, and lead nowhere:
/// their numbers are in librdmacm's own book, and it closes them when it opens a device that it has not seen
/// yet, such as the same one added again. Closed by us, their numbers would be somebody else's by then. So
/// there are two for each device that is removed and not put back, however often that happens.
void let_go_of_removed(IdPtr anchor);

/// Nobody uses `anchor` and its channel any more, but its device may be removed some day, which a thread of
/// this process then hears. One id is kept for each device that the process has used.
void watch_for_removal(std::shared_ptr<rdma_event_channel> channel, IdPtr anchor);

}  // namespace rdma_rpc::fabric::verbs
