// Soft-iWARP's library takes one place among what it maps of the driver for the sign of a failure. Called
// when a device is opened.
#pragma once

#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs::soft {

/// Each queue of a context is mapped at a page number of its own, the first that is free. The queue that
/// would begin at page 144 is refused without a reason (SIW_INVAL_UOBJ_KEY, from a time when these were other
/// numbers), and so are all that are asked for later: some 40 queue pairs are the end. What this returns lies
/// across that page, and is to be kept as long as queues are made. Null where nothing has to be.
CqPtr cover_reserved_key(ibv_context* context);

}  // namespace rdma_rpc::fabric::verbs::soft
