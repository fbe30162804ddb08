// See system_limit.h.
#include "fabric/system_limit.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace rdma_rpc::fabric {

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
