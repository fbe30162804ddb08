// Releases removed devices, which librdmacm does not do. It opens each device that it is used on and keeps it
// open as long as the process lives, and the kernel does not complete the removal of an open device. A device
// that a process has used once would therefore block its own removal, and the addition of a device with the
// same name, until the process ends. Called by connection_manager.cc, on the threads of its devices.
#pragma once

#include <memory>

#include "fabric/verbs/connect/cm_objects.h"

namespace rdma_rpc::fabric::verbs {

/// Call when `anchor`, an id bound to a device, has reported that the device is removed. Destroys the id and
/// redirects librdmacm's two descriptors of that device to /dev/null. They are not closed, because librdmacm
/// remembers their numbers and closes them itself when it opens a device that it has not seen yet, such as
/// the same one added again; by then, numbers closed here could belong to other files. So two descriptors
/// stay open for each device that is removed and not put back, however often that happens.
void let_go_of_removed(IdPtr anchor);

/// Call when `anchor` and its channel are no longer used. If their device is removed later, a thread of this
/// process handles that. One id is kept for each device that the process has used.
void watch_for_removal(std::shared_ptr<rdma_event_channel> channel, IdPtr anchor);

}  // namespace rdma_rpc::fabric::verbs
