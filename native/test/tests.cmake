# The native test programs: one per folder of native/, every *_test.cc in native/test/<layer>/ belongs to it.
find_package(GTest REQUIRED)
include(GoogleTest)
foreach(layer fabric memory session)
  file(GLOB test_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/${layer}/*.cc)
  if(test_sources)
    add_executable(${layer}_test ${test_sources})
    target_link_libraries(${layer}_test PRIVATE rdma_rpc_core GTest::gtest GTest::gtest_main)
    target_include_directories(${layer}_test PRIVATE ${CMAKE_CURRENT_LIST_DIR})
    # GCC 12 sees overflows in a growing std::vector where there are none, at -O3 only.
    target_compile_options(${layer}_test PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
    target_compile_definitions(${layer}_test PRIVATE RDMA_RPC_GOLDEN_DIR="${CMAKE_SOURCE_DIR}/test/golden")
    gtest_discover_tests(${layer}_test)
    if(layer STREQUAL session)  # once more, on a device without memory windows
      gtest_discover_tests(${layer}_test TEST_PREFIX "iwarp." PROPERTIES ENVIRONMENT RDMA_RPC_SIM=iwarp)
    endif()
  endif()
endforeach()

# The session with a bug planted in it: its test passes when the oracle of the session tests finds the bug.
set(session_test ${CMAKE_CURRENT_LIST_DIR}/session)
add_executable(session_canary_test ${session_test}/canary/canary_test.cc ${session_test}/ledger.cc ${session_test}/side.cc ${session_test}/side_events.cc
                                   ${session_test}/audit.cc ${session_test}/pair.cc ${CMAKE_SOURCE_DIR}/native/session/revocation.cc)
target_link_libraries(session_canary_test PRIVATE rdma_rpc_core GTest::gtest GTest::gtest_main)
target_include_directories(session_canary_test PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_compile_definitions(session_canary_test PRIVATE RDMA_RPC_CANARY)
gtest_discover_tests(session_canary_test)

# The fabric suite on RDMA devices. One test for CTest, since it can only run as a whole or not at all.
set(fabric_test ${CMAKE_CURRENT_LIST_DIR}/fabric)
file(GLOB suite_sources CONFIGURE_DEPENDS ${fabric_test}/*_suite.cc ${fabric_test}/verbs/*_test.cc)
set(verbs ${CMAKE_SOURCE_DIR}/native/fabric/verbs)
add_executable(verbs_test ${suite_sources} ${fabric_test}/allocation_count.cc ${verbs}/address.cc ${verbs}/ip_address.cc)
target_link_libraries(verbs_test PRIVATE rdma_rpc_core GTest::gtest)
target_include_directories(verbs_test PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_compile_options(verbs_test PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
if(TARGET rdma_rpc_verbs)
  add_dependencies(verbs_test rdma_rpc_verbs)
endif()
add_test(NAME verbs_test COMMAND verbs_test)
set_tests_properties(verbs_test PROPERTIES SKIP_RETURN_CODE 77)

# Sessions on RDMA devices, as above.
file(GLOB verbs_session_sources CONFIGURE_DEPENDS ${session_test}/verbs/*.cc)
set(faults_test ${CMAKE_CURRENT_LIST_DIR}/verbs)
add_executable(verbs_session_test ${verbs_session_sources} ${session_test}/ledger.cc ${session_test}/side.cc ${session_test}/side_events.cc ${session_test}/audit.cc
                                  ${faults_test}/ends.cc ${faults_test}/devices.cc)
target_link_libraries(verbs_session_test PRIVATE rdma_rpc_core GTest::gtest)
target_include_directories(verbs_session_test PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_compile_options(verbs_session_test PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
if(TARGET rdma_rpc_verbs)
  add_dependencies(verbs_session_test rdma_rpc_verbs)
endif()
add_test(NAME verbs_session_test COMMAND verbs_session_test)
set_tests_properties(verbs_session_test PROPERTIES SKIP_RETURN_CODE 77)

# What only real devices can show: faults of the wire, of processes, of peers that lie, of resources.
file(GLOB faults_sources CONFIGURE_DEPENDS ${faults_test}/*.cc)
add_executable(verbs_faults_test ${faults_sources} ${session_test}/ledger.cc ${session_test}/side.cc ${session_test}/side_events.cc
                                 ${session_test}/audit.cc ${session_test}/scripted_peer.cc)
target_link_libraries(verbs_faults_test PRIVATE rdma_rpc_core GTest::gtest)
target_include_directories(verbs_faults_test PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_compile_options(verbs_faults_test PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
if(TARGET rdma_rpc_verbs)
  add_dependencies(verbs_faults_test rdma_rpc_verbs)
  # Functions of libibverbs that the plug-in is to find in this program first.
  file(GLOB provider_sources CONFIGURE_DEPENDS ${faults_test}/provider/*.cc)
  target_sources(verbs_faults_test PRIVATE ${provider_sources})
  target_include_directories(verbs_faults_test SYSTEM PRIVATE ${RDMA_RPC_VERBS_INCLUDE})
  set_target_properties(verbs_faults_test PROPERTIES ENABLE_EXPORTS ON)
endif()
add_test(NAME verbs_faults_test COMMAND verbs_faults_test)
set_tests_properties(verbs_faults_test PROPERTIES SKIP_RETURN_CODE 77)
