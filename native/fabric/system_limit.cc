// See system_limit.h.
#include "fabric/system_limit.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace rdma_rpc::fabric {
namespace {

/// Returns the first number in a file of the kernel. Returns 0 when the file cannot be read.
std::uint64_t number_in(const char* path) {
  unsigned long long number = 0;
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  const int read = std::fscanf(file, "%llu", &number);
  std::fclose(file);
  return read == 1 ? number : 0;
}

std::uint64_t memory_maps() {
  std::FILE* file = std::fopen("/proc/self/maps", "r");
  if (file == nullptr) return 0;
  std::uint64_t lines = 0;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) lines += c == '\n' ? 1 : 0;
  std::fclose(file);
  return lines;
}

/// When fewer than this number of memory maps are left, a request can fail, because some requests need two or
/// three.
constexpr std::uint64_t kMapsSpare = 16;

}  // namespace

std::string system_refusal(int error) {
  const std::string cause = std::strerror(error);
  rlimit limit{};
  switch (error) {
    case EMFILE:
      ::getrlimit(RLIMIT_NOFILE, &limit);
      return cause + "; this process may have " + std::to_string(limit.rlim_cur) +
             " (raise it with ulimit -n, or LimitNOFILE of its service)";
    case ENFILE:
      return cause + "; the limit is that of the whole system (sysctl fs.file-max)";
    case ENOMEM:
      if (const std::uint64_t most = number_in("/proc/sys/vm/max_map_count");
          most != 0 && memory_maps() + kMapsSpare >= most) {
        return cause + "; this process may have " + std::to_string(most) +
               " memory maps (raise it with sysctl vm.max_map_count); each session over shared memory "
               "takes " +
               "two or three";
      }
      ::getrlimit(RLIMIT_AS, &limit);
      return limit.rlim_cur == RLIM_INFINITY
                 ? cause + "; the system, or the control group of this process, has no more to give"
                 : cause + "; this process may have " + std::to_string(limit.rlim_cur) +
                       " bytes of addresses (raise it with ulimit -v)";
    default:
      return cause;
  }
}

}  // namespace rdma_rpc::fabric
