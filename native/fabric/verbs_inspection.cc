// See verbs_inspection.h.
#include "fabric/verbs_inspection.h"

#include "fabric/verbs_loader.h"

namespace rdma_rpc::fabric {

std::vector<VerbsDetails> describe_verbs_devices() {
  std::vector<VerbsDetails> details;
  std::string error;
  const auto describe = reinterpret_cast<DescribeVerbs>(verbs_entry(kVerbsDescribe, &error));
  if (describe != nullptr) describe(&details);
  return details;
}

std::unique_ptr<VerbsWatch> watch_verbs_device(const std::string& device, std::string* error) {
  const auto watch = reinterpret_cast<WatchVerbs>(verbs_entry(kVerbsWatch, error));
  return watch == nullptr ? nullptr : std::unique_ptr<VerbsWatch>(watch(device, error));
}

}  // namespace rdma_rpc::fabric
