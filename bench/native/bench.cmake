# The native benchmarks, each a program to run by hand: cmake -B build/bench -DRDMA_RPC_BENCH=ON. tcp_stream is a
# peer of `npm run bench`, too.
add_executable(shm_ring ${CMAKE_CURRENT_LIST_DIR}/shm_ring.cc)
target_link_libraries(shm_ring PRIVATE rdma_rpc_core)

find_package(Threads REQUIRED)
add_executable(tcp_stream ${CMAKE_CURRENT_LIST_DIR}/tcp_stream.cc)
target_link_libraries(tcp_stream PRIVATE Threads::Threads)
