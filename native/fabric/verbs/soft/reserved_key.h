// Works around soft-iWARP's library, which takes one valid offset of the driver's mappings for an error code.
// Called when a device is opened.
#pragma once

#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs::soft {

/// Each queue of a context is mapped at a page number of its own, the first free one. The queue that would
/// begin at page 144 is refused without a reason (SIW_INVAL_UOBJ_KEY, from a time when these were other
/// numbers), and so are all later ones: some 40 queue pairs are the limit. The returned queue covers that
/// page and must be kept as long as queues are made. Returns null where nothing has to be covered.
CqPtr cover_reserved_key(ibv_context* context);

}  // namespace rdma_rpc::fabric::verbs::soft
