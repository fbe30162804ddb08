// Simulates a NIC. The functions of libibverbs in this folder are part of the test program. The plug-in finds
// them before the library's own functions, because the symbols of a program precede those of the libraries
// that it loads. Therefore all of native/fabric/verbs runs on a machine without a device, and a test can give
// that machine the NICs and the behaviour that it needs:
//
//   profile.h     what a kind of NIC can do: limits and traits
//   nic.h         one NIC: its ports' GIDs, its live objects, the attributes that it got (this file)
//   huge_pages.h  the kernel's huge pages, and control groups that forbid them
//   host.h        the network interfaces of this host
//   objects.h     the objects to which the library's handles point
//   work.cc       the queues: requests that are posted, held up and polled
//   transport.cc  one work request: its keys are checked, and its bytes move
//   datagrams.cc  UC and UD queue pairs, address handles, multicast groups
//   profiles.cc   NICs that exist, each trait with its source
//   library.cc, queues.cc   the functions in front of libibverbs, one by one
//   manager.cc   those in front of librdmacm
//   ../*_test.cc  the tests, one file for each behaviour
//
// Queue pairs are connected over the sideband, unless a test asks for rdma_cm. Any two queue pairs of this
// process can be connected. One lock guards everything, because the plug-in connects queue pairs on separate
// threads.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "nic/device/profile.h"

namespace rdma_rpc::nic {

struct Context;

struct Live {
  std::uint32_t regions = 0, windows = 0, queue_pairs = 0, completion_queues = 0;
};

class Nic {
 public:
  explicit Nic(const Profile& profile);

  ibv_device device{};
  Profile profile;
  ibv_port_attr port{};
  std::vector<ibv_gid_entry> gids;
  std::vector<Context*> contexts;
  Live live;
  /// Number of control calls since the NIC was made. On a real NIC each of them is a command to the firmware.
  std::uint64_t commands = 0;
  /// Number of READs and atomics of peers for which the queue pairs in RTR and RTS have resources.
  int reads_reserved = 0;
  /// A hook that gets each queue pair's attributes and their mask before the NIC receives them.
  std::function<void(const ibv_qp_attr&, int mask)> told;
  /// The attributes of each queue pair that was made.
  std::vector<ibv_qp_cap> made;
  /// The interrupt vector of each completion queue that was made with a channel.
  std::vector<int> vectors;
  /// Number of interrupt vectors that the NIC has.
  int vectors_max = 1;
  /// The error that every poll of this NIC's completion queues returns from now on; 0 when polls work.
  int poll_error = 0;
  /// Number of requests that the NIC's queue pairs have executed, by opcode.
  std::map<ibv_wr_opcode, std::uint32_t> carried_out;
  /// The errno with which the NIC refuses to move queue pairs to RTR; 0 when it does not refuse.
  int refuses_rtr = 0;
  /// The errno with which the next registrations fail, oldest first; 0 lets one pass.
  std::deque<int> registration_errors;
  /// The access flags of each registration.
  std::vector<unsigned> registered;

  /// Wrong calls, which a real library would refuse with EBUSY, or in which it would wait for ever.
  std::vector<std::string> misuse;
  /// The number of bits that an address must have in common with the NIC's own address at GID index 1. The
  /// NIC reaches only such addresses. For other peers it returns EHOSTUNREACH, as if the kernel found no
  /// route to them.
  unsigned reaches_bits = 0;
  bool reaches(const ibv_gid& peer) const;
  /// The limit of a packet's bytes. Longer packets are lost.
  std::uint32_t wire_mtu = 4096;
  /// Number of requests of rdma_cm from this NIC that are lost on the way, from now on. A switch that drops
  /// the packets of rdma_cm loses all of them, although the port is ACTIVE and the device passes its trial.
  std::uint32_t requests_to_lose = 0;
  /// True while all packets are lost, see lose_link().
  bool link_lost = false;

  /// Makes the NIC end a queue pair by itself. The NIC reports only the events that it must report.
  void break_queue_pair(std::uint32_t number);
  /// Loses all packets from and to this NIC from now on, although the port is ACTIVE. This is what happens
  /// when a bond fails over or a switch restarts.
  void lose_link();
  /// Ends the loss of packets, which has lasted for the time `after`. Queue pairs fail when their retries
  /// take less time than that.
  void find_link(std::chrono::milliseconds after);
  /// Unplugs the cable, or plugs it in. This changes the port's state, creates its event, and stops or admits
  /// packets.
  void set_port(ibv_port_state state);
  /// Makes rdma_cm report to each connection of this NIC that its address has moved to other hardware, as
  /// when a bond fails over.
  void move_address();
  /// Returns whether the SEND that arrives now has to wait for a page.
  bool handles_page_fault() {
    const std::uint32_t every = profile.page_fault_every;
    return every != 0 && ++sends_received % every == 0;
  }
  std::uint32_t sends_received = 0;
  std::uint32_t entries_of_reads() const {
    const ibv_device_attr& attr = profile.attributes;
    return static_cast<std::uint32_t>(attr.max_sge_rd > 0 ? attr.max_sge_rd : attr.max_sge);
  }

  /// Sets the GID at that index to a RoCE v2 GID with this IPv4 address. An empty address removes the GID.
  void set_gid(std::uint32_t index, std::string_view ipv4, unsigned interface = 0);
  void report(ibv_event_type type);
};

/// A machine with its NICs. The library sees the machine that was made last.
class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// The address of the Nth NIC is 10.0.0.N, at GID index 1.
  Nic& add(const Profile& profile);
  static Machine* current();
  /// True when rdma_cm can connect the NICs, too.
  bool has_manager = false;
  const std::vector<std::shared_ptr<Nic>>& nics() const { return nics_; }
  /// The groups of IPv4 that this host has joined, in network byte order (datagrams.cc).
  std::vector<std::uint32_t> memberships;

 private:
  std::vector<std::shared_ptr<Nic>> nics_;
  Machine* before_;
};

std::recursive_mutex& lock();

}  // namespace rdma_rpc::nic
