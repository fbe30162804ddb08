# Defines the native test programs. Each layer of native/ has one, which contains every *_test.cc below
# native/test/<layer>/. The programs that need RDMA devices follow. Code that several programs share is
# compiled once, as an object library.
if(CMAKE_CROSSCOMPILING)
  # Debian has GoogleTest's library for each architecture, but its sources for all architectures.
  set(googletest /usr/src/googletest/googletest)
  foreach(part gtest gtest_main)
    add_library(${part} STATIC EXCLUDE_FROM_ALL ${googletest}/src/$<IF:$<STREQUAL:${part},gtest>,gtest-all,gtest_main>.cc)
    target_include_directories(${part} SYSTEM PUBLIC ${googletest}/include PRIVATE ${googletest})
    add_library(GTest::${part} ALIAS ${part})
  endforeach()
  target_link_libraries(gtest PUBLIC Threads::Threads)
  target_link_libraries(gtest_main PUBLIC gtest)
else()
  find_package(GTest REQUIRED)
endif()
include(GoogleTest)

# Tests are compiled for a short build: with -Og after the build type's -O3. The code that they test keeps its
# own flags.
add_library(rdma_rpc_test_flags INTERFACE)
target_link_libraries(rdma_rpc_test_flags INTERFACE rdma_rpc_core GTest::gtest)
target_include_directories(rdma_rpc_test_flags INTERFACE ${CMAKE_CURRENT_LIST_DIR})
target_compile_options(rdma_rpc_test_flags INTERFACE -Og)
target_compile_definitions(rdma_rpc_test_flags INTERFACE RDMA_RPC_GOLDEN_DIR="${CMAKE_SOURCE_DIR}/test/golden")

set(fabric_test ${CMAKE_CURRENT_LIST_DIR}/fabric)
set(session_test ${CMAKE_CURRENT_LIST_DIR}/session)
set(faults_test ${CMAKE_CURRENT_LIST_DIR}/verbs)

# Headers that nearly every file includes take most of a test's compile time. Such headers are compiled once
# for the parts and once for the programs, whose flags differ. The library, the addon and the plug-in use
# precompiled headers only with sanitizers. In a build without sanitizers, these layers are the same libraries
# that the package contains. Each of their files must therefore include all headers that it uses, and a file
# that was compiled for the addon is not compiled again for the tests.
set(often <algorithm> <array> <atomic> <chrono> <cstring> <deque> <functional> <map> <memory> <optional> <random> <set> <span>
          <string> <thread> <unordered_map> <vector>)
if(RDMA_RPC_SANITIZE)
  target_precompile_headers(rdma_rpc_core PRIVATE ${often})
  if(TARGET rdma_rpc)
    target_precompile_headers(rdma_rpc PRIVATE ${often} <napi.h>)
  endif()
  if(TARGET rdma_rpc_verbs)
    target_precompile_headers(rdma_rpc_verbs PRIVATE ${often} <infiniband/verbs.h> <rdma/rdma_cma.h>)
  endif()
endif()
function(precompile_for_tests first)
  target_precompile_headers(${first} PRIVATE <gtest/gtest.h> ${often})
  foreach(other ${ARGN})
    target_precompile_headers(${other} REUSE_FROM ${first})
  endforeach()
endfunction()

# This is the fabric suite, for simulated, shared-memory, TCP and RDMA devices.
file(GLOB fabric_suite_sources CONFIGURE_DEPENDS ${fabric_test}/suite/*.cc)
add_library(fabric_suite OBJECT ${fabric_suite_sources})
# These are the two sides of a session and the oracle that watches them.
set(sides ${session_test}/sides)
add_library(session_sides OBJECT ${sides}/ledger.cc ${sides}/side.cc ${sides}/side_events.cc ${sides}/audit.cc)
add_library(session_pair OBJECT ${sides}/pair.cc)
add_library(session_scripted_peer OBJECT ${session_test}/hostile/scripted_peer.cc)
# This is the session suite in real time, for any two devices.
add_library(session_device_suite OBJECT ${session_test}/suite/device_suite.cc ${faults_test}/devices/ends.cc
            ${faults_test}/devices/devices.cc)
foreach(parts fabric_suite session_sides session_pair session_scripted_peer session_device_suite)
  target_link_libraries(${parts} PRIVATE rdma_rpc_test_flags)
endforeach()
precompile_for_tests(fabric_suite session_sides session_pair session_scripted_peer session_device_suite)

foreach(layer fabric memory telemetry session perf)
  file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/${layer}/*_test.cc)
  list(FILTER test_sources EXCLUDE REGEX "/(verbs|canary)/[^/]*$") # programs of their own, below
  add_executable(${layer}_test ${test_sources})
  target_link_libraries(${layer}_test PRIVATE rdma_rpc_test_flags GTest::gtest_main)
endforeach()
target_link_libraries(fabric_test PRIVATE fabric_suite)
target_link_libraries(session_test PRIVATE session_sides session_pair session_scripted_peer session_device_suite)
target_sources(session_test PRIVATE ${faults_test}/devices/hooked_device.cc)
target_sources(perf_test PRIVATE ${CMAKE_SOURCE_DIR}/native/perf/program/words.cc)
gtest_discover_tests(fabric_test)
gtest_discover_tests(memory_test)
gtest_discover_tests(telemetry_test)
gtest_discover_tests(perf_test)
gtest_discover_tests(session_test)
# The session tests run once more, on a device without memory windows.
gtest_discover_tests(session_test TEST_PREFIX "iwarp." PROPERTIES ENVIRONMENT RDMA_RPC_SIM=iwarp)
# The session tests also run with sessions that share their receives.
gtest_discover_tests(session_test TEST_PREFIX "shared." PROPERTIES ENVIRONMENT RDMA_RPC_SIM=shared)

# shm is compiled once more, with words and copies that a model steps through
# (native/fabric/shm/shared_words.h). The objects of this shm come before the library's, which are then left
# out.
file(GLOB model_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/model/*.cc ${CMAKE_SOURCE_DIR}/native/fabric/shm/*.cc
     ${CMAKE_SOURCE_DIR}/native/fabric/shm/*/*.cc)
add_executable(shm_model_test ${model_sources})
target_link_libraries(shm_model_test PRIVATE rdma_rpc_test_flags GTest::gtest_main)
target_compile_definitions(shm_model_test PRIVATE RDMA_RPC_SHARED_WORDS="model/words.h")
gtest_discover_tests(shm_model_test)

# The session with a bug planted in it. Its test passes when the oracle of the session tests finds the bug.
set(client_endpoint ${CMAKE_SOURCE_DIR}/native/session/client)
add_executable(session_canary_test ${session_test}/canary/canary_test.cc ${client_endpoint}/calls.cc ${client_endpoint}/revocation.cc)
target_link_libraries(session_canary_test PRIVATE session_sides session_pair rdma_rpc_test_flags GTest::gtest_main)
target_compile_definitions(session_canary_test PRIVATE RDMA_RPC_CANARY)
gtest_discover_tests(session_canary_test)

# Tests on RDMA devices. Each program is one test for CTest, because it can only run as a whole.
file(GLOB verbs_suite_sources CONFIGURE_DEPENDS ${fabric_test}/verbs/*_test.cc)
set(verbs ${CMAKE_SOURCE_DIR}/native/fabric/verbs)
add_executable(verbs_test ${verbs_suite_sources} ${verbs}/address/address.cc ${verbs}/address/ip_address.cc)
target_link_libraries(verbs_test PRIVATE fabric_suite)

file(GLOB verbs_session_sources CONFIGURE_DEPENDS ${session_test}/verbs/*.cc)
add_executable(verbs_session_test ${verbs_session_sources})
target_link_libraries(verbs_session_test PRIVATE session_sides session_device_suite)

# Tests of faults that only real devices can show: faults of the wire, of processes, of lying peers, and of
# resources.
file(GLOB faults_sources CONFIGURE_DEPENDS ${faults_test}/*.cc ${faults_test}/devices/*.cc ${faults_test}/peer/*.cc)
add_executable(verbs_faults_test ${faults_sources})
target_link_libraries(verbs_faults_test PRIVATE session_sides session_scripted_peer)
if(TARGET rdma_rpc_verbs)
  # The plug-in is searched for beside the program that loads it, but is built beside the addon.
  if(RDMA_RPC_ADDON AND NOT RDMA_RPC_ADDON_OUTPUT STREQUAL CMAKE_BINARY_DIR)
    file(CREATE_LINK ${RDMA_RPC_ADDON_OUTPUT}/rdma_rpc_verbs.so ${CMAKE_BINARY_DIR}/rdma_rpc_verbs.so SYMBOLIC)
  endif()
  # These functions replace those of libibverbs: the plug-in finds them in this program first.
  file(GLOB provider_sources CONFIGURE_DEPENDS ${faults_test}/provider/*.cc)
  target_sources(verbs_faults_test PRIVATE ${provider_sources})
  target_include_directories(verbs_faults_test SYSTEM PRIVATE ${RDMA_RPC_VERBS_INCLUDE})
  set_target_properties(verbs_faults_test PROPERTIES ENABLE_EXPORTS ON)
endif()

# Tests of native/fabric/verbs on a simulated NIC. These tests run everywhere, because they need no device.
if(TARGET rdma_rpc_verbs)
  file(GLOB nic_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/nic/*.cc ${CMAKE_CURRENT_LIST_DIR}/nic/*/*.cc)
  list(FILTER nic_sources EXCLUDE REGEX "/preload/")
  add_executable(nic_test ${nic_sources} ${verbs}/control_group.cc ${verbs}/numa.cc)
  target_link_libraries(nic_test PRIVATE fabric_suite session_sides session_device_suite rdma_rpc_test_flags
                                          GTest::gtest_main)
  target_include_directories(nic_test SYSTEM PRIVATE ${RDMA_RPC_VERBS_INCLUDE})
  set_target_properties(nic_test PROPERTIES ENABLE_EXPORTS ON)
  add_dependencies(nic_test rdma_rpc_verbs)
  gtest_discover_tests(nic_test)
endif()

foreach(program verbs_test verbs_session_test verbs_faults_test)
  target_link_libraries(${program} PRIVATE rdma_rpc_test_flags)
  if(TARGET rdma_rpc_verbs)
    add_dependencies(${program} rdma_rpc_verbs)
  endif()
  add_test(NAME ${program} COMMAND ${program})
  set_tests_properties(${program} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()

precompile_for_tests(session_test fabric_test memory_test telemetry_test perf_test verbs_test verbs_session_test verbs_faults_test)
if(TARGET nic_test)
  target_precompile_headers(nic_test REUSE_FROM session_test)
endif()

# Tests of a peer that lies, ends, stops or is late run once more over tcp, because their results must be the
# same on every fabric.
set(faults_of_peers KeysOf MemoryOfAServer ManySessions LateServer ServerEnds ClientEnds ServerOfACancelledCall)
list(TRANSFORM faults_of_peers REPLACE "(.+)" "*\\1*")
list(JOIN faults_of_peers ":" faults_of_peers)
add_test(NAME tcp_faults_test COMMAND verbs_faults_test --gtest_filter=${faults_of_peers})
set_tests_properties(tcp_faults_test PROPERTIES ENVIRONMENT RDMA_RPC_TEST_FABRIC=tcp)
