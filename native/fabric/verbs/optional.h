// What libibverbs has only from rdma-core 34 and 35 on, later than the oldest one that the plug-in loads with
// (32): looked up at run time. Called when devices are listed and probed and when memory is registered, never
// per call.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace rdma_rpc::fabric::verbs {

/// As ibv_reg_dmabuf_mr(); null with EOPNOTSUPP where the library has none.
ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                      int access);

/// Makes fork() safe where the kernel does not do so by itself.
void allow_forks();
/// Whether the library guards registered memory against fork() page by page. One that cannot be asked does.
bool guards_pages();

}  // namespace rdma_rpc::fabric::verbs
