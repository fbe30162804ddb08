# The native benchmarks, each a program to run by hand: cmake -B build/bench -DRDMA_RPC_BENCH=ON.
add_executable(shm_ring ${CMAKE_CURRENT_LIST_DIR}/shm_ring.cc)
target_link_libraries(shm_ring PRIVATE rdma_rpc_core)
