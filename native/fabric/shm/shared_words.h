// Loads, stores and copies of the words and bytes that two processes share. All code of this folder that
// accesses shared memory on the hot path uses these functions, on the device's thread.
//
// Normally these are std::atomic and memcpy. The model (native/test/model) builds this folder a second time,
// with a header of its own that it names in RDMA_RPC_SHARED_WORDS. In the model, the other side may run at
// each load, store, fence and copy, and a load may return any value that the memory orders allow.
#pragma once

#ifdef RDMA_RPC_SHARED_WORDS
#include RDMA_RPC_SHARED_WORDS
#else

#include <atomic>
#include <cstddef>
#include <cstring>

namespace rdma_rpc::fabric::shm {

template <class T>
using SharedWord = std::atomic<T>;

inline void shared_fence(std::memory_order order) { std::atomic_thread_fence(order); }
/// Must be called before a system call that the other side notices.
inline void stall_point() {}
/// Copies from or to memory that the other side can access, too.
inline void copy_shared(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace rdma_rpc::fabric::shm

#endif
