// Defines owners of the objects of librdmacm. The files that connect queue pairs use these owners on the
// device's thread. Objects of an abandoned attempt are destroyed on the thread of that attempt.
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>

namespace rdma_rpc::fabric::verbs {

struct DestroyEventChannel {
  void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
};
using EventChannelPtr = std::unique_ptr<rdma_event_channel, DestroyEventChannel>;

/// Destroying an id waits until its events are acknowledged. Therefore an id must never be destroyed while
/// one of its events is being handled.
struct DestroyId {
  void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
};
using IdPtr = std::unique_ptr<rdma_cm_id, DestroyId>;

}  // namespace rdma_rpc::fabric::verbs
