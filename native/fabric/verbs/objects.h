// Each type in this file owns one kind of object of libibverbs. This file is used by all files of this
// folder, on the device's thread. The objects of a queue pair are an exception when its connection is
// abandoned before the kernel releases it (connect_thread.h). Each of these objects shares the ownership of
// the objects that it needs.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <memory>

namespace rdma_rpc::fabric::verbs {

template <typename T, int (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const { destroy(object); }
};
template <typename T, int (*destroy)(T*)>
using Owned = std::unique_ptr<T, Destroy<T, destroy>>;

template <typename T, int (*destroy)(T*)>
class Shared : public std::shared_ptr<T> {
 public:
  Shared(std::nullptr_t = nullptr) {}
  explicit Shared(T* object) { reset(object); }
  void reset(T* object = nullptr) {
    // A shared_ptr made from null and a deleter would call the deleter with null.
    std::shared_ptr<T>& self = *this;
    if (object == nullptr) {
      self.reset();
    } else {
      self.reset(object, Destroy<T, destroy>{});
    }
  }
};

using ContextPtr = Shared<ibv_context, ibv_close_device>;
using PdPtr = Shared<ibv_pd, ibv_dealloc_pd>;
using ChannelPtr = Shared<ibv_comp_channel, ibv_destroy_comp_channel>;
using CqPtr = Shared<ibv_cq, ibv_destroy_cq>;
using SrqPtr = Shared<ibv_srq, ibv_destroy_srq>;
using AhPtr = Owned<ibv_ah, ibv_destroy_ah>;
using QpPtr = Owned<ibv_qp, ibv_destroy_qp>;
/// A queue pair with the objects that must outlive it. C++ destroys members from the last to the first.
struct QueueObjects {
  ContextPtr context;
  PdPtr pd;
  ChannelPtr channel;
  CqPtr cq;
  SrqPtr srq;  ///< null when all receives are its own
  QpPtr qp;
};
using MrPtr = Owned<ibv_mr, ibv_dereg_mr>;
// ibv_dealloc_mw is an inline function of the header, so its address differs between translation units.
struct DeallocMw {
  void operator()(ibv_mw* mw) const { ibv_dealloc_mw(mw); }
};
using MwPtr = std::unique_ptr<ibv_mw, DeallocMw>;

}  // namespace rdma_rpc::fabric::verbs
