// See control_group.h.
#include "fabric/verbs/control_group.h"

#include <fstream>

namespace rdma_rpc::fabric::verbs {
namespace {

/// Returns the folder of this process's control group below /sys/fs/cgroup, or "" when none has the rdma
/// controller. In version 1 of control groups the controller has a folder of its own.
std::string folder_of_process(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string unified;
  for (std::string line; std::getline(groups, line);) {
    const std::size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = line.substr(controllers, path - controllers - 1);
    if (names == "rdma") return "/sys/fs/cgroup/rdma" + line.substr(path);
    if (names.empty()) unified = "/sys/fs/cgroup" + line.substr(path);
  }
  return unified;
}

/// Returns the lines of one of the controller's files, joined with commas. A line is for example
/// "mlx5_0 hca_handle=2 hca_object=2000".
std::string lines_of(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line);) text += (text.empty() ? "" : ", ") + line;
  return text;
}

std::string without_slashes_at_the_end(std::string path) {
  path.resize(path.find_last_not_of('/') + 1);
  return path;
}

bool limits_something(const std::string& lines) {
  for (const char* object : {"hca_handle=", "hca_object="}) {
    for (std::size_t at = lines.find(object); at != std::string::npos; at = lines.find(object, at + 1)) {
      if (lines.compare(at + std::string(object).size(), 3, "max") != 0) return true;
    }
  }
  return false;
}

}  // namespace

std::string rdma_controller_limit(const std::string& root) {
  // The limit of a group also holds for all groups below it, so the search goes upwards.
  for (std::string folder = without_slashes_at_the_end(folder_of_process(root)); !folder.empty();
       folder = without_slashes_at_the_end(folder.substr(0, folder.find_last_of('/')))) {
    const std::string most = lines_of(root + folder + "/rdma.max");
    if (!limits_something(most)) continue;
    const std::string current = lines_of(root + folder + "/rdma.current");
    return "; the control group of this process may have " + most + " (" + folder + "/rdma.max)" +
           (current.empty() ? "" : ", and has " + current);
  }
  return "; if a control group limits RDMA objects, raise its rdma.max";
}

}  // namespace rdma_rpc::fabric::verbs
