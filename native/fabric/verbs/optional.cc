// See optional.h.
#include "fabric/verbs/optional.h"

#include <dlfcn.h>

#include <cerrno>

namespace rdma_rpc::fabric::verbs {
namespace {

/// Returns the first symbol with this name in the lookup order of the plug-in, so that a test can put a
/// function of its own in front.
template <typename Function>
Function* look_up(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

// enum ibv_fork_status, which older headers lack.
constexpr int kForkUnknown = -1, kForkDisabled = 0, kForkEnabled = 1, kForkUnneeded = 2;

int fork_status() {
  static auto* const found = look_up<int()>("ibv_is_fork_initialized");
  return found == nullptr ? kForkUnknown : found();
}

}  // namespace

ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                      int access) {
  using Register = ibv_mr*(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  static auto* const found = look_up<Register>("ibv_reg_dmabuf_mr");
  if (found != nullptr) return found(pd, offset, length, iova, fd, access);
  errno = EOPNOTSUPP;
  return nullptr;
}

void allow_forks() {
  if (fork_status() != kForkEnabled && fork_status() != kForkUnneeded) ibv_fork_init();
}

bool guards_pages() { return fork_status() != kForkDisabled && fork_status() != kForkUnneeded; }

}  // namespace rdma_rpc::fabric::verbs
