// Looks up functions that libibverbs has only since rdma-core 34 and 35, which are newer than the oldest
// version with which the plug-in loads (32). These functions are looked up at run time. This code is called
// when devices are listed and probed and when memory is registered, never per call.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace rdma_rpc::fabric::verbs {

/// Calls ibv_reg_dmabuf_mr(). Returns null with EOPNOTSUPP when the library has no such function.
ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                      int access);

/// Makes fork() safe on kernels that do not do so themselves.
void allow_forks();
/// Returns whether the library protects registered memory against fork() page by page. Returns true for a
/// library that has no function to ask.
bool guards_pages();

}  // namespace rdma_rpc::fabric::verbs
