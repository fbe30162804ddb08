# Defines the toolchain of the binaries that the package ships. The toolchain consists of this machine's g++
# (for arm64, Debian's cross compiler), and of the C library, libstdc++ and libibverbs of an older Debian in
# RDMA_RPC_SYSROOT. scripts/sysroot.mjs creates that folder, and scripts/prebuilds.mjs configures with this
# file. The linked binaries then run with the glibc of every system that Node 20 runs on; scripts/symbols.mjs
# checks this.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RDMA_RPC_SYSROOT RDMA_RPC_ARCH RDMA_RPC_EMULATOR)
if(RDMA_RPC_ARCH STREQUAL "arm64")
  set(CMAKE_SYSTEM_PROCESSOR aarch64)
  set(triplet aarch64-linux-gnu)
elseif(RDMA_RPC_ARCH STREQUAL "x64")
  set(CMAKE_SYSTEM_PROCESSOR x86_64)
  set(triplet x86_64-linux-gnu)
else()
  message(FATAL_ERROR "RDMA_RPC_ARCH must be x64 or arm64, not '${RDMA_RPC_ARCH}'")
endif()
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_SYSROOT ${RDMA_RPC_SYSROOT})
# The emulator that runs tests which are built for another processor.
if(NOT RDMA_RPC_EMULATOR STREQUAL "")
  set(CMAKE_CROSSCOMPILING_EMULATOR ${RDMA_RPC_EMULATOR} -L ${RDMA_RPC_SYSROOT})
endif()
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})

# Only the sysroot is searched, because a cross compiler has a newer C library of its own, which it would
# otherwise prefer. libstdc++ is linked into the binary, so it must also be the old one: a new libstdc++ calls
# functions of the C library with which it was built. GCC's own headers (intrinsics, stddef.h) come from the
# compiler.
set(libraries ${RDMA_RPC_SYSROOT}/usr/lib/${triplet})
set(headers ${RDMA_RPC_SYSROOT}/usr/include)
file(GLOB gcc_libraries ${RDMA_RPC_SYSROOT}/usr/lib/gcc/${triplet}/*)
get_filename_component(gcc_version "${gcc_libraries}" NAME)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=include OUTPUT_VARIABLE gcc_headers OUTPUT_STRIP_TRAILING_WHITESPACE)
# -w is set because a newer GCC warns about older headers. The ordinary build checks the warnings.
set(CMAKE_CXX_FLAGS_INIT "-w -nostdinc")
foreach(folder ${headers}/c++/${gcc_version} ${headers}/${triplet}/c++/${gcc_version} ${headers}/c++/${gcc_version}/backward ${gcc_headers}
               ${headers}/${triplet} ${headers})
  string(APPEND CMAKE_CXX_FLAGS_INIT " -isystem ${folder}")
endforeach()
foreach(kind EXE MODULE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT
      "-B${libraries}/ -L${gcc_libraries} -L${libraries} -L${RDMA_RPC_SYSROOT}/lib/${triplet} -static-libstdc++ -static-libgcc")
endforeach()

set(CMAKE_FIND_ROOT_PATH ${RDMA_RPC_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
