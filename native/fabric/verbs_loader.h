// Real RDMA devices, through a plug-in that is loaded only if it is there, so that the addon loads
// everywhere. Called when a context is opened, on its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// How queue pairs find each other.
enum class VerbsConnect : std::uint8_t {
  automatic,  ///< cm where both sides have it, else sideband
  cm,         ///< librdmacm; the only way for iWARP
  sideband,   ///< number, LID or GID, PSN and MTU travel in the address blobs
};

struct VerbsOptions {
  std::string device;  ///< such as "mlx5_0"; empty: chosen by `address`, else the first one that can be used
  std::uint8_t port = 0;  ///< 0: the one with `address`, else the first active one
  int gid_index = -1;     ///< -1: RoCE v2 on IPv4 before RoCE v2 on IPv6 before RoCE v1; 0 on InfiniBand
  std::string address;    ///< IP address, without port, that is being served or dialled from; a hint, ignored
                          ///< when no device has it
  VerbsConnect connect = VerbsConnect::automatic;
  /// Limit of one connection attempt by rdma_cm, whatever the kernel's own limits are.
  std::uint32_t connect_timeout_ms = 4000;
  /// A packet is sent again when no answer came for 4.096 us * 2^this: 14 is 67 ms. 1 to 31.
  std::uint8_t ack_timeout = 14;
  /// That often, then retry_exc_err: with 6 and 14 after about half a second. 0 to 7; soft-RoCE takes 7 for
  /// endless.
  std::uint8_t retry_count = 6;
  /// How often a peer is asked again that is not ready to receive: 7 is endless, -1: 7 where the peer says
  /// that it pages, else 0, since a SEND that finds no receive is otherwise a mistake.
  int rnr_retry = -1;
  /// Memory may be registered on demand, so that peers may be told to come back: they are told so.
  bool on_demand = false;
  /// Of what is sent. -1: as rdma_cm says, else 0. `tos` is for rdma_cm and iWARP, and on RoCE the traffic
  /// class where that is not given.
  int traffic_class = -1, service_level = -1, tos = -1;
  /// What we ask a peer to wait whose SEND found no receive, as a code: 12 is 0.64 ms, 0 would be 655 ms.
  std::uint8_t min_rnr_timer = 12;
};

struct VerbsGid {
  std::uint32_t index = 0;
  std::string gid;        ///< as an IPv6 address; an IPv4 one as a.b.c.d
  std::string type;       ///< "IB", "RoCE v1", "RoCE v2"
  std::string interface;  ///< of the network, where known
};
struct VerbsPort {
  std::uint32_t number = 0, active_mtu = 0, lid = 0;
  std::string state, link_layer;  ///< "ACTIVE", "DOWN" ...; "InfiniBand", "Ethernet"
  std::vector<VerbsGid> gids;
};
struct VerbsDevice {
  std::string name, transport;  ///< "InfiniBand" (RoCE too), "iWARP"
  std::string why_not;          ///< empty: it can be opened
  Capabilities capabilities;    ///< of one that was opened, else all 0
  std::vector<VerbsPort> ports;
};
struct VerbsReport {
  std::string
      why_none;  ///< why there is no device at all: library, kernel, rights; empty when there are devices
  std::string why_no_cm;  ///< why rdma_cm cannot be used; empty when it can
  std::string memlock;    ///< "unlimited" or "65536 bytes"
  std::vector<VerbsDevice> devices;
};

/// Opens a device. Null when there is none or it cannot be used; `error` then says what is missing and what
/// to do.
std::unique_ptr<Device> open_verbs_device(const VerbsOptions& options, std::string* error);

/// Every device of this machine, with what it can do and why it cannot be used. Opens and closes each, and
/// registers so many bytes meanwhile: what is to be used must allow that.
VerbsReport list_verbs_devices(std::size_t needed_bytes);

/// An entry of the plug-in at that path, or null and why. For the functions here, and for their test.
void* verbs_plugin_entry(const std::string& path, const char* name, std::string* error);
/// Of the plug-in that is beside this binary: what other layers have in it (native/perf/bare).
void* verbs_entry(const char* name, std::string* error);

/// The plug-in's entries, and what they are called. The number changes with this header and with fabric.h.
using ListVerbs = void (*)(VerbsReport* report, std::size_t needed_bytes);
using OpenVerbs = Device* (*)(const VerbsOptions& options, std::string* error);
inline constexpr char kVerbsPlugin[] = "rdma_rpc_verbs.so";
inline constexpr char kVerbsOpen[] = "rdma_rpc_open_verbs_2";
inline constexpr char kVerbsList[] = "rdma_rpc_list_verbs_2";

}  // namespace rdma_rpc::fabric
