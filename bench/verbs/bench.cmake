# The native benchmarks of real RDMA, which bench/verbs/main.ts runs: cmake -B build/bench
# -DRDMA_RPC_BENCH=ON.
set(verbs_bench ${CMAKE_CURRENT_LIST_DIR})
add_executable(verbs_session ${verbs_bench}/session.cc ${verbs_bench}/end.cc ${verbs_bench}/load.cc)
target_link_libraries(verbs_session PRIVATE rdma_rpc_core)
if(TARGET rdma_rpc_verbs)
  add_dependencies(verbs_session rdma_rpc_verbs)
endif()

add_executable(mr_cache_hit ${verbs_bench}/mr_cache_hit.cc)
target_link_libraries(mr_cache_hit PRIVATE rdma_rpc_core)

# Posting and polling in C++ (bench/verbs/post-poll.ts).
add_executable(post_poll ${verbs_bench}/post_poll.cc)
target_link_libraries(post_poll PRIVATE rdma_rpc_core)
if(TARGET rdma_rpc_verbs)
  add_dependencies(post_poll rdma_rpc_verbs)
endif()
