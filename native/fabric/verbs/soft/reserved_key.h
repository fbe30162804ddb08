// Works around a defect of soft-iWARP's library, which treats one valid offset of a mapping as an error code.
// This code is called when a device is opened.
#pragma once

#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs::soft {

/// Each queue of a context is mapped at the first free page number. The queue that would begin at page 144 is
/// refused without a reason, because its offset equals the library's SIW_INVAL_UOBJ_KEY. All later queues are
/// refused, too. That limits a context to some 40 queue pairs. The returned queue occupies that page and must
/// be kept as long as queues are made. Returns null for drivers without this defect.
CqPtr cover_reserved_key(ibv_context* context);

}  // namespace rdma_rpc::fabric::verbs::soft
