// Loads the support for real RDMA devices from a plug-in, if the plug-in is installed, so that the addon
// loads everywhere. This code is called when a context is opened, on the thread of that context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// The ways in which two queue pairs connect.
enum class VerbsConnect : std::uint8_t {
  automatic,  ///< cm where both sides have it, otherwise sideband
  cm,         ///< librdmacm; the only way for iWARP
  sideband,   ///< the address blobs carry queue pair number, LID or GID, PSN and MTU
};

struct VerbsOptions {
  std::string device;     ///< such as "mlx5_0"; empty chooses the device by `address`, or the first usable
                          ///< device
  std::uint8_t port = 0;  ///< 0 chooses the port that has `address`, or the first active one
  int gid_index = -1;     ///< -1 prefers RoCE v2 on IPv4, then RoCE v2 on IPv6, then RoCE v1; 0 on InfiniBand
  /// IP address, without a port, at which this side serves or from which it connects. The address is a hint,
  /// which is ignored when no device has it.
  std::string address;
  VerbsConnect connect = VerbsConnect::automatic;
  /// QueuePair::connect() also takes the address of a listener of another program (decode_listener()).
  /// Sessions never use this option, because such a peer does not prove its identity.
  bool other_listeners = false;
  /// Time limit of one rdma_cm connection attempt, in addition to the kernel's own limits.
  std::uint32_t connect_timeout_ms = 4000;
  /// An unacknowledged packet is sent again after 4.096 us * 2^this; 16 means 268 ms. The range is 1 to 31.
  std::uint8_t ack_timeout = 16;
  /// Number of resends before retry_exc_err. With 6 and an ack_timeout of 16, a network may lose all packets
  /// for 1.88 s. The range is 0 to 7; soft-RoCE treats 7 as unlimited.
  std::uint8_t retry_count = 6;
  /// Number of retries when the peer is not ready to receive; 7 is unlimited. -1 chooses 7 when the peer
  /// registers memory on demand. Otherwise it chooses 0, because a SEND that finds no receive is then an
  /// error.
  int rnr_retry = -1;
  /// Memory may be registered on demand. Peers are notified of this option, because a page fault can make
  /// them retry (rnr_retry).
  bool on_demand = false;
  /// These values are for sent packets. -1 uses the value of rdma_cm, or 0 without rdma_cm. `tos` is for
  /// rdma_cm and iWARP; on RoCE it is also the default of the traffic class.
  int traffic_class = -1, service_level = -1, tos = -1;
  /// Time that a peer must wait after its SEND found no receive here, as an IBTA code: 12 is 0.64 ms, 0 would
  /// be 655 ms.
  std::uint8_t min_rnr_timer = 12;
  /// The partition of queue pairs that connect over the sideband, as an index into the port's table of
  /// P_Keys. rdma_cm finds the partition itself.
  std::uint16_t pkey_index = 0;
  /// The device may write to memory in any order until it reports a completion (IBV_ACCESS_RELAXED_ORDERING).
  /// On some hosts that doubles the bandwidth. The option is only for users that read memory after a
  /// completion, and never poll the memory itself. Sessions do poll the memory; see
  /// docs/internals/drivers.md.
  bool relaxed_ordering = false;
};

struct VerbsGid {
  std::uint32_t index = 0;
  std::string gid;        ///< as an IPv6 address; an IPv4 address as a.b.c.d
  std::string type;       ///< "IB", "RoCE v1", "RoCE v2"
  std::string interface;  ///< the network interface, where known
};
struct VerbsPort {
  std::uint32_t number = 0, active_mtu = 0, lid = 0;
  std::string state, link_layer;  ///< "ACTIVE", "DOWN" ...; "InfiniBand", "Ethernet"
  std::vector<VerbsGid> gids;
};
struct VerbsDevice {
  std::string name, transport;  ///< "InfiniBand" (RoCE too), "iWARP"
  std::string why_not;          ///< why it cannot be opened; empty when it can
  Capabilities capabilities;    ///< all 0 unless the device was opened
  std::vector<VerbsPort> ports;
};
struct VerbsReport {
  std::string
      why_none;  ///< the reason why no device was found: library, kernel, rights; empty when the list is not
                 ///< empty
  std::string why_no_cm;  ///< why rdma_cm cannot be used; empty when it can
  std::string memlock;    ///< "unlimited" or "65536 bytes"
  std::vector<VerbsDevice> devices;
};

/// Opens a device. Returns null when the device does not exist or cannot be used; `error` then names the
/// missing part and the remedy.
std::unique_ptr<Device> open_verbs_device(const VerbsOptions& options, std::string* error);

/// Determines which devices list_verbs_devices() opens and tests. The ports of all devices are read. Testing
/// a device takes tens of commands more.
struct VerbsSearch {
  std::string device;                 ///< as in VerbsOptions; empty tries all
  std::size_t needed_bytes = 0;       ///< registered on each device, to check that the limits allow that
  std::uint32_t enough = UINT32_MAX;  ///< the search ends with this number of devices that can be used
};

/// Lists every device of this machine with its ports. A device that was tested also has its capabilities, or
/// the reason why it cannot be used.
VerbsReport list_verbs_devices(const VerbsSearch& search);

/// Returns an entry point of the plug-in at that path, or null with the reason in `error`. This function is
/// for the functions of this file and their test.
void* verbs_plugin_entry(const std::string& path, const char* name, std::string* error);
/// Returns an entry point of the plug-in beside this binary, for other layers that have code in it
/// (native/perf/bare).
void* verbs_entry(const char* name, std::string* error);

/// The plug-in's entry points and their names. The number in a name changes with this header and with
/// fabric.h.
using ListVerbs = void (*)(VerbsReport* report, const VerbsSearch& search);
using OpenVerbs = Device* (*)(const VerbsOptions& options, std::string* error);
inline constexpr char kVerbsPlugin[] = "rdma_rpc_verbs.so";
inline constexpr char kVerbsOpen[] = "rdma_rpc_open_verbs_5";
inline constexpr char kVerbsList[] = "rdma_rpc_list_verbs_5";

}  // namespace rdma_rpc::fabric
