// See open.h.
#include "fabric/verbs/open.h"

#include "fabric/verbs/device_list.h"

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

/// Creates a device of that context with its port chosen. Returns null, with the reason in `why`, on failure.
std::unique_ptr<Device> make(ibv_device* candidate, const VerbsOptions& options,
                             const std::optional<Interface>& interface, std::string* why) {
  ContextPtr context = open_context(candidate, why);
  if (context == nullptr) return nullptr;
  Port port;
  *why = choose_port(context.get(), options, interface, &port);
  if (!why->empty()) return nullptr;
  return Device::make(std::move(context), options, port, why);
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
  std::unique_ptr<Device> best;
  bool known = false;
  for (ibv_device* candidate : why.empty() ? list.devices() : std::span<ibv_device* const>()) {
    if (!options.device.empty() && options.device != ibv_get_device_name(candidate)) continue;
    known = true;
    std::string reason;
    std::unique_ptr<Device> device = make(candidate, options, interface, &reason);
    if (device == nullptr) {
      error->append(error->empty() ? "" : "; ").append(reason);
    } else if (best == nullptr || (device->port().has_address && !best->port().has_address)) {
      best = std::move(device);
    }
    if (best != nullptr && (!interface || best->port().has_address)) break;
  }
  if (best != nullptr) {
    error->clear();
    return best;
  }
  if (why.empty() && !known)
    why = "there is no RDMA device '" + options.device + "' (option device); there is: " + list.names();
  *error = "verbs is off: " + (why.empty() ? *error : why);
  return nullptr;
}

VerbsReport list_devices(std::size_t needed_bytes) {
  const DeviceList list;
  VerbsReport report;
  report.why_none = list.why_none();
  report.why_no_cm = why_no_rdma_cm();
  report.memlock = memlock_limit();
  for (ibv_device* candidate : list.devices()) {
    VerbsDevice& entry = report.devices.emplace_back();
    entry.name = ibv_get_device_name(candidate);
    entry.transport = candidate->transport_type == IBV_TRANSPORT_IWARP ? "iWARP"
                      : candidate->transport_type == IBV_TRANSPORT_IB  ? "InfiniBand"
                                                                       : "of its own kind";
    if (const ContextPtr context = open_context(candidate, &entry.why_not); context != nullptr)
      entry.ports = list_ports(context.get());
    if (!entry.why_not.empty()) continue;
    const auto device = make(candidate, {}, std::nullopt, &entry.why_not);
    if (device == nullptr) continue;
    entry.capabilities = device->capabilities();
    entry.why_not = why_too_little(*device, needed_bytes);
  }
  return report;
}

}  // namespace rdma_rpc::fabric::verbs
