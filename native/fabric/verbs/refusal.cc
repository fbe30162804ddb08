// See refusal.h.
#include "fabric/verbs/refusal.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "fabric/system_limit.h"
#include "fabric/verbs/control_group.h"

namespace rdma_rpc::fabric::verbs {

std::string why_not_registered(int error, std::size_t length, const std::string& device) {
  return "cannot register " + std::to_string(length) + " bytes on " + device + ": " + why_refused(error);
}

std::string memlock_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur) + " bytes";
}

std::string why_refused(int error) {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  // The kernel reports this error when the rdma controller of a control group does not allow an object.
  if (error == EAGAIN) return std::string(std::strerror(error)) + rdma_controller_limit();
  if (error == EFAULT)
    return std::string(std::strerror(error)) +
           ": a page cannot be given to the device. It is not mapped, or only readable, or of a file (Linux "
           "6.5 and later), or a huge page beyond the limit of the control group (hugetlb.2MB.max)";
  if (error != 0 && (error != ENOMEM || limit.rlim_cur == RLIM_INFINITY)) return system_refusal(error);
  // Memory registered with a device is locked, and some drivers report no error when the limit is exceeded.
  return (error == 0 ? std::string("its driver gives no reason") : std::strerror(error)) +
         "; locked memory is limited to " + memlock_limit() +
         " (raise it with ulimit -l, or LimitMEMLOCK of its service)";
}

}  // namespace rdma_rpc::fabric::verbs
