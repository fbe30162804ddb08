# The native benchmarks. Each is a program that people run by hand: cmake -B build/bench -DRDMA_RPC_BENCH=ON.
# tcp_stream is also a peer of `npm run bench`.
foreach(program shm_ring session_memory recorder many_sessions page_touch)
  add_executable(${program} ${CMAKE_CURRENT_LIST_DIR}/${program}.cc)
  target_link_libraries(${program} PRIVATE rdma_rpc_core)
endforeach()

find_package(Threads REQUIRED)
add_executable(tcp_stream ${CMAKE_CURRENT_LIST_DIR}/tcp_stream.cc)
target_link_libraries(tcp_stream PRIVATE Threads::Threads)
