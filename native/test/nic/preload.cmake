# Builds the simulated NICs as a library for LD_PRELOAD (preload/preload.cc). The library is built only when
# test/nic asks for it.
set(nic ${CMAKE_CURRENT_LIST_DIR})
file(GLOB nic_device_sources CONFIGURE_DEPENDS ${nic}/device/*.cc)
list(FILTER nic_device_sources EXCLUDE REGEX "/huge_pages.cc$") # it replaces mmap(), which is not for a whole Node
add_library(rdma_rpc_test_nics MODULE EXCLUDE_FROM_ALL ${nic_device_sources} ${nic}/preload/preload.cc)
target_link_libraries(rdma_rpc_test_nics PRIVATE rdma_rpc_flags ${CMAKE_DL_LIBS})
target_include_directories(rdma_rpc_test_nics PRIVATE ${CMAKE_SOURCE_DIR}/native/test)
target_include_directories(rdma_rpc_test_nics SYSTEM PRIVATE ${RDMA_RPC_VERBS_INCLUDE})
target_compile_options(rdma_rpc_test_nics PRIVATE -Og)
