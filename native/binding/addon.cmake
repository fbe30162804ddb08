# Builds the Node-API addon from native/binding and rdma_rpc_core. CMakeLists.txt includes this file when
# RDMA_RPC_ADDON is on. The product is rdma_rpc.node in RDMA_RPC_ADDON_OUTPUT.

# The headers of node-addon-api and node-api-headers, which scripts/vendor.mjs copies there.
set(napi_include "${CMAKE_SOURCE_DIR}/dist/vendor/include")
if(NOT EXISTS "${napi_include}/napi.h")
  message(FATAL_ERROR "${napi_include}/napi.h was not found. In a clone `npm run setup` puts it there.")
endif()

# uv.h is not in the two header packages, but comes with the installed Node. libuv keeps its ABI within major
# version 1.
execute_process(COMMAND node -p "require('path').resolve(require('fs').realpathSync(process.execPath), '../../include/node')"
                OUTPUT_VARIABLE beside_node OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_path(RDMA_RPC_UV_INCLUDE uv.h
          HINTS "${RDMA_RPC_NODE_INCLUDE}" "$ENV{npm_config_nodedir}/include/node" "${beside_node}" /usr/include/node)
if(NOT RDMA_RPC_UV_INCLUDE)
  message(FATAL_ERROR "uv.h was not found: looked in \$npm_config_nodedir/include/node, ${beside_node} and /usr/include/node. "
                      "Set npm_config_nodedir to a Node installation that has its headers, or install libuv1-dev.")
endif()

file(GLOB binding_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cc ${CMAKE_CURRENT_LIST_DIR}/*/*.cc)
add_library(rdma_rpc MODULE ${binding_sources})
target_link_libraries(rdma_rpc PRIVATE rdma_rpc_core)
if(TARGET rdma_rpc_verbs)
  add_dependencies(rdma_rpc rdma_rpc_verbs) # which it loads
endif()
# The binary in the package must also load where libstdc++ is older than on this machine.
target_link_options(rdma_rpc PRIVATE -static-libstdc++ -static-libgcc)
# The addon has threads that outlive the JS thread that loaded it (fabric/rights.h, fabric/socket_relay.h).
target_link_options(rdma_rpc PRIVATE -Wl,-z,nodelete)
# These headers are marked SYSTEM because they are not written for -Wconversion.
target_include_directories(rdma_rpc SYSTEM PRIVATE ${napi_include} ${RDMA_RPC_UV_INCLUDE})
# The last definition is needed because a worker thread that is being terminated also refuses exceptions, and
# such a refusal must not end the process.
target_compile_definitions(rdma_rpc PRIVATE NAPI_VERSION=9 NODE_ADDON_API_DISABLE_CPP_EXCEPTIONS
                                            NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS)
set_target_properties(rdma_rpc PROPERTIES PREFIX "" SUFFIX ".node"
                      LIBRARY_OUTPUT_DIRECTORY ${RDMA_RPC_ADDON_OUTPUT})
