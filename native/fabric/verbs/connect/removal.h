// Closes the files of removed devices. librdmacm does not close them: it keeps each device open until the
// process ends, and the kernel cannot complete the removal of an open device. A process that has used a
// device once would therefore block its removal, and the addition of another device with the same name.
// connection_manager.cc calls these functions, on the threads of its devices.
#pragma once

#include <memory>

#include "fabric/verbs/connect/cm_objects.h"

namespace rdma_rpc::fabric::verbs {

/// Must be called when `anchor`, an id bound to a device, has reported that the device is removed. Destroys
/// the id and redirects librdmacm's two descriptors of that device to /dev/null. The descriptors are not
/// closed, because librdmacm remembers their numbers and closes them itself when it opens a new device. By
/// then, the numbers could belong to other files. Therefore two descriptors stay open for each device that is
/// removed and not added again.
void let_go_of_removed(IdPtr anchor);

/// Must be called when `anchor` and its channel are no longer used. If their device is removed later, a
/// thread of this process handles that. One id is kept for each device that the process has used.
void watch_for_removal(std::shared_ptr<rdma_event_channel> channel, IdPtr anchor);

}  // namespace rdma_rpc::fabric::verbs
