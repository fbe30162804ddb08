# Builds the program and the plug-in with which `rdma-rpc perf` measures. CMakeLists.txt includes this file
# when RDMA_RPC_ADDON is on.
file(GLOB perf_program_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cc)
add_executable(rdma_rpc_perf ${perf_program_sources})
target_link_libraries(rdma_rpc_perf PRIVATE rdma_rpc_core)
if(TARGET rdma_rpc_verbs)
  add_dependencies(rdma_rpc_perf rdma_rpc_verbs) # which it loads
endif()
# Like the addon, the program must start where libstdc++ is older than on this machine.
target_link_options(rdma_rpc_perf PRIVATE -static-libstdc++ -static-libgcc)
set_target_properties(rdma_rpc_perf PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${RDMA_RPC_ADDON_OUTPUT})
