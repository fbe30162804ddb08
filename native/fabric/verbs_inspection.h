// Returns details about the RDMA devices of a machine for people, beyond the data that sessions need: all
// attributes (`rdma-rpc devices -v`), and the events that devices report (`rdma-rpc events`). The code behind
// this file is loaded from the plug-in, as for verbs_loader.h. This code is called on the JS thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rdma_rpc::fabric {

/// An attribute with its name in libibverbs, and its value as text: a decimal number, or the name of the
/// value.
struct VerbsAttribute {
  std::string name, value;
};
struct VerbsPortDetails {
  std::uint32_t number = 0;
  std::vector<VerbsAttribute> attributes;
  /// The partitions in the port's table, without empty entries. Each has an index and a P_Key, as in
  /// "0x8001".
  std::vector<VerbsAttribute> pkeys;
};
struct VerbsDetails {
  std::string name;
  std::string why_not;  ///< why the device cannot be opened; empty when it can
  std::vector<VerbsAttribute> attributes;
  std::vector<std::string> flags;  ///< the names of its device_cap_flags
  std::vector<VerbsPortDetails> ports;
};

/// An event of a device or of one of its ports.
struct VerbsEvent {
  std::string name;        ///< such as "IBV_EVENT_PORT_ERR"
  std::string text;        ///< libibverbs' own description
  std::uint32_t port = 0;  ///< 0 when it concerns the device as a whole
};

/// Receives the events of one device. The kernel keeps the events of a device until they are read.
class VerbsWatch {
 public:
  virtual ~VerbsWatch() = default;
  /// Takes the next event. Returns false when no event has come.
  virtual bool take(VerbsEvent* event) = 0;
};

/// Describes every device of this machine. Returns an empty list where the plug-in cannot be loaded.
std::vector<VerbsDetails> describe_verbs_devices();

/// Watches the device with this name. Returns null, with the reason in `error`, when it cannot be opened.
std::unique_ptr<VerbsWatch> watch_verbs_device(const std::string& device, std::string* error);

/// The plug-in's entry points and their names. The number at the end of each name must be increased when this
/// header changes.
using DescribeVerbs = void (*)(std::vector<VerbsDetails>* details);
using WatchVerbs = VerbsWatch* (*)(const std::string& device, std::string* error);
inline constexpr char kVerbsDescribe[] = "rdma_rpc_describe_verbs_1";
inline constexpr char kVerbsWatch[] = "rdma_rpc_watch_verbs_1";

}  // namespace rdma_rpc::fabric
