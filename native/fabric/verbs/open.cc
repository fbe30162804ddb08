// See open.h.
#include "fabric/verbs/open.h"

#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "fabric/verbs/device_list.h"
#include "fabric/verbs/refusal.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::uint32_t kConnectTimeoutMaxMs = 600'000;

std::string why_bad(const VerbsOptions& options) {
  if (options.ack_timeout < 1 || options.ack_timeout > 31)
    return "ackTimeout is " + std::to_string(options.ack_timeout) + ", not 1 to 31";
  if (options.retry_count > 7) return "retryCount is " + std::to_string(options.retry_count) + ", not 0 to 7";
  if (options.min_rnr_timer > 31)
    return "minRnrTimer is " + std::to_string(options.min_rnr_timer) + ", not 0 to 31";
  if (options.connect_timeout_ms < 1 || options.connect_timeout_ms > kConnectTimeoutMaxMs)
    return "connectTimeoutMs is " + std::to_string(options.connect_timeout_ms) + ", not 1 to " +
           std::to_string(kConnectTimeoutMaxMs);
  if (options.rnr_retry > 7) return "rnrRetry is " + std::to_string(options.rnr_retry) + ", not 0 to 7";
  if (options.service_level > 15)
    return "serviceLevel is " + std::to_string(options.service_level) + ", not 0 to 15";
  if (options.traffic_class > 255 || options.tos > 255)
    return "trafficClass is " + std::to_string(options.traffic_class) + " and tos " +
           std::to_string(options.tos) + ", not 0 to 255";
  if (options.gid_index > 255) return "gidIndex is " + std::to_string(options.gid_index) + ", not 0 to 255";
  return "";
}

/// Returns whether the option names this device. The option is a name, a pattern, or a comma-separated list.
bool is_named(const std::string& option, const char* device) {
  if (option.empty()) return true;
  for (std::size_t at = 0; at <= option.size();) {
    const std::size_t end = std::min(option.find(',', at), option.size());
    if (::fnmatch(option.substr(at, end - at).c_str(), device, 0) == 0) return true;
    at = end + 1;
  }
  return false;
}

/// An open device whose port has been chosen. The capabilities of the device are not known yet: probing them
/// takes many commands, so only the device that is used is probed.
struct Candidate {
  ContextPtr context;
  Port port;
};

/// Sets `candidate` and returns "", or returns why no port of the device can be used.
std::string look_at(ibv_device* device, const VerbsOptions& options,
                    const std::optional<Interface>& interface, Candidate* candidate) {
  std::string why;
  candidate->context = open_context(device, &why);
  if (candidate->context == nullptr) return why;
  return choose_port(candidate->context.get(), options, interface, &candidate->port);
}

/// Returns why this amount of memory cannot be registered now, or "" when it can.
std::string why_too_little(Device& device, std::size_t bytes) {
  if (bytes == 0) return "";
  const auto memory = device.alloc_memory(bytes, "trial");
  std::string why = memory == nullptr ? device.refusal() : "";
  if (memory != nullptr) device.reg_mr(memory->data(), memory->size(), access_local_write, &why);
  return why.empty() ? "" : "it needs " + std::to_string(bytes) + " bytes for a first session: " + why;
}

}  // namespace

std::unique_ptr<Device> open_device(const VerbsOptions& options, std::string* error) {
  error->clear();
  const DeviceList list;
  std::string why = why_bad(options);
  if (why.empty()) why = list.why_none();
  const std::optional<Interface> interface = interface_with(options.address);
  std::vector<Candidate> others;
  bool known = false;
  const auto add_reason = [error](const std::string& reason) {
    error->append(error->empty() ? "" : "; ").append(reason);
  };
  const auto make = [&](Candidate& candidate) {
    std::string reason;
    auto device = Device::make(std::move(candidate.context), options, candidate.port, &reason);
    device == nullptr ? add_reason(reason) : error->clear();
    return device;
  };
  for (ibv_device* each : why.empty() ? list.devices() : std::span<ibv_device* const>()) {
    if (!is_named(options.device, ibv_get_device_name(each))) continue;
    known = true;
    Candidate candidate;
    const std::string reason = look_at(each, options, interface, &candidate);
    if (!reason.empty()) {
      add_reason(reason);
      continue;
    }
    // Devices that come after the one with the address are not even opened.
    if (interface && !candidate.port.has_address) {
      others.push_back(std::move(candidate));
    } else if (auto device = make(candidate); device != nullptr) {
      return device;
    }
  }
  for (Candidate& candidate : others) {
    if (auto device = make(candidate); device != nullptr) return device;
  }
  if (why.empty() && !known)
    why = "there is no RDMA device '" + options.device + "' (option device); there is: " + list.names();
  *error = "verbs is off: " + (why.empty() ? *error : why);
  return nullptr;
}

VerbsReport list_devices(const VerbsSearch& search) {
  const DeviceList list;
  VerbsReport report;
  report.why_none = list.why_none();
  report.why_no_cm = why_no_rdma_cm();
  report.memlock = memlock_limit();
  std::uint32_t usable = 0;
  for (ibv_device* candidate : list.devices()) {
    VerbsDevice& entry = report.devices.emplace_back();
    entry.name = ibv_get_device_name(candidate);
    entry.transport = candidate->transport_type == IBV_TRANSPORT_IWARP ? "iWARP"
                      : candidate->transport_type == IBV_TRANSPORT_IB  ? "InfiniBand"
                                                                       : "of its own kind";
    ContextPtr context = open_context(candidate, &entry.why_not);
    if (context == nullptr) continue;
    entry.ports = list_ports(context.get());
    Port port;
    entry.why_not = choose_port(context.get(), {}, std::nullopt, &port);
    if (!entry.why_not.empty() || usable >= search.enough || !is_named(search.device, entry.name.c_str()))
      continue;
    const auto device = Device::make(std::move(context), {}, port, &entry.why_not);
    if (device == nullptr) continue;
    entry.capabilities = device->capabilities();
    entry.why_not = why_too_little(*device, search.needed_bytes);
    if (entry.why_not.empty()) ++usable;
  }
  return report;
}

}  // namespace rdma_rpc::fabric::verbs
