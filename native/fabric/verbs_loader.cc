// See verbs_loader.h.
#include "fabric/verbs_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace rdma_rpc::fabric {
namespace {

/// Returns the path of the plug-in. The plug-in is in the folder that is named when the program for `rdma-rpc
/// perf` and the plug-in are in different packages (cli/perf/program.ts). Otherwise the plug-in is in the
/// folder of the binary that contains this code.
std::string plugin_path() {
  const char* folder = std::getenv("RDMA_RPC_PLUGINS");
  if (folder != nullptr && *folder != '\0') return std::string(folder) + "/" + kVerbsPlugin;
  Dl_info info{};
  static const char anchor = 0;
  if (::dladdr(&anchor, &info) == 0 || info.dli_fname == nullptr) return kVerbsPlugin;
  const std::string binary = info.dli_fname;
  const std::size_t slash = binary.rfind('/');
  return (slash == std::string::npos ? std::string("./") : binary.substr(0, slash + 1)) + kVerbsPlugin;
}

}  // namespace

void* verbs_plugin_entry(const std::string& path, const char* name, std::string* error) {
  if (::access(path.c_str(), R_OK) != 0) {
    *error = "verbs is off: there is no " + path +
             " (it is built where libibverbs-dev and librdmacm-dev are installed)";
    return nullptr;
  }
  // The plug-in is never closed, because libibverbs and its drivers cannot be unloaded safely.
  void* plugin = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    *error = std::string("verbs is off: ") + ::dlerror() +
             " (Debian packages: libibverbs1, librdmacm1, ibverbs-providers)";
    return nullptr;
  }
  void* found = ::dlsym(plugin, name);
  if (found == nullptr) *error = "verbs is off: " + path + " is of another version: build all of it anew";
  return found;
}

void* verbs_entry(const char* name, std::string* error) {
  return verbs_plugin_entry(plugin_path(), name, error);
}

std::unique_ptr<Device> open_verbs_device(const VerbsOptions& options, std::string* error) {
  const auto open = reinterpret_cast<OpenVerbs>(verbs_entry(kVerbsOpen, error));
  return open == nullptr ? nullptr : std::unique_ptr<Device>(open(options, error));
}

VerbsReport list_verbs_devices(const VerbsSearch& search) {
  VerbsReport report;
  const auto list = reinterpret_cast<ListVerbs>(verbs_entry(kVerbsList, &report.why_none));
  if (list != nullptr) list(&report, search);
  return report;
}

}  // namespace rdma_rpc::fabric
