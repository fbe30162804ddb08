// See device_list.h.
#include "fabric/verbs/device_list.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "fabric/verbs/optional.h"

namespace rdma_rpc::fabric::verbs {
namespace {

bool holds_something(const char* folder) {
  std::error_code none;
  std::filesystem::directory_iterator entries(folder, none);
  return !none && entries != std::filesystem::directory_iterator();
}

}  // namespace

DeviceList::DeviceList() {
  allow_forks();
  list_ = ibv_get_device_list(&count_);
  if (list_ == nullptr) count_ = 0;
}

DeviceList::~DeviceList() {
  if (list_ != nullptr) ibv_free_device_list(list_);
}

std::string DeviceList::names() const {
  std::string text;
  for (ibv_device* device : devices()) {
    text.append(text.empty() ? "" : ", ").append(ibv_get_device_name(device));
  }
  return text;
}

std::string DeviceList::why_none() const {
  if (count_ > 0) return "";
  if (!holds_something("/sys/class/infiniband"))
    return "this machine has no RDMA device (soft-RoCE: rdma link add rxe0 type rxe netdev eth0)";
  if (!holds_something("/sys/class/infiniband_verbs"))
    return "programs cannot use the RDMA devices: load the kernel module ib_uverbs (modprobe ib_uverbs)";
  return "libibverbs has no driver for the RDMA devices (Debian package: ibverbs-providers)";
}

ContextPtr open_context(ibv_device* device, std::string* why) {
  ContextPtr context(ibv_open_device(device));
  if (context != nullptr) return context;
  const std::string file = std::string("/dev/infiniband/") + device->dev_name;
  *why = std::string(ibv_get_device_name(device)) + " cannot be opened: ";
  if (errno == EACCES || errno == EPERM) {
    *why += "no permission on " + file + " (its group, often rdma, has it)";
  } else if (errno == ENOENT) {
    *why += "there is no " + file + " (a container needs the files of /dev/infiniband)";
  } else {
    *why += file + ": " + std::strerror(errno);
  }
  return nullptr;
}

}  // namespace rdma_rpc::fabric::verbs
