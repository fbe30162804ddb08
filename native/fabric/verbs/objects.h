// Owners of the objects of libibverbs, one type each. Used by all files of this folder, on the device's
// thread.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace rdma_rpc::fabric::verbs {

template <typename T, int (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const { destroy(object); }
};
template <typename T, int (*destroy)(T*)>
using Owned = std::unique_ptr<T, Destroy<T, destroy>>;

using ContextPtr = Owned<ibv_context, ibv_close_device>;
using PdPtr = Owned<ibv_pd, ibv_dealloc_pd>;
using ChannelPtr = Owned<ibv_comp_channel, ibv_destroy_comp_channel>;
using CqPtr = Owned<ibv_cq, ibv_destroy_cq>;
using QpPtr = Owned<ibv_qp, ibv_destroy_qp>;
using MrPtr = Owned<ibv_mr, ibv_dereg_mr>;
// ibv_dealloc_mw is an inline function of the header: it has no address that is the same everywhere.
struct DeallocMw {
  void operator()(ibv_mw* mw) const { ibv_dealloc_mw(mw); }
};
using MwPtr = std::unique_ptr<ibv_mw, DeallocMw>;

}  // namespace rdma_rpc::fabric::verbs
