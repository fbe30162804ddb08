// A NIC of our own making. The functions of libibverbs in this folder are part of the test program, and the
// plug-in finds them before the library's own, since the symbols of a program precede those of the libraries
// that it loads. So all of native/fabric/verbs runs on a machine without a device, and a test can give that
// machine the NICs and the habits that it wants to see:
//
//   profile.h     what a kind of NIC can do: limits and traits
//   nic.h         one NIC: its ports' GIDs, its live objects, what it was told (this file)
//   huge_pages.h  the kernel's huge pages, and control groups that forbid them
//   host.h        the network interfaces of this host
//   objects.h     what the library's handles point to
//   work.cc       the queues: what is posted, held up and polled
//   transport.cc  one work request: its keys are checked, and its bytes move
//   datagrams.cc  UC and UD queue pairs, address handles, multicast groups
//   profiles.cc   NICs that exist, each trait with its source
//   library.cc, queues.cc   the functions in front of libibverbs, one by one
//   manager.cc   those in front of librdmacm
//   ../*_test.cc  the tests, one file for each habit
//
// Queue pairs are connected over the sideband, unless a test asks for rdma_cm. Any two queue pairs of this
// process can be connected. One lock guards everything, since the plug-in connects queue pairs on threads of
// their own.
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
  /// Control calls since the NIC was made: each of them is a command to the firmware of a real NIC.
  std::uint64_t commands = 0;
  /// READs and atomics of peers that the queue pairs in RTR and RTS have resources for.
  int reads_reserved = 0;
  /// Called with each queue pair's attributes and their mask, before the NIC takes them.
  std::function<void(const ibv_qp_attr&, int mask)> told;
  /// The attributes of each queue pair that was made.
  std::vector<ibv_qp_cap> made;
  /// The vector of each completion queue that was made with a channel, and how many the NIC has.
  std::vector<int> vectors;
  int vectors_max = 1;
  /// The answer of the next poll of any of its completion queues, and of all later ones; 0: they work.
  int poll_error = 0;
  /// Requests that its queue pairs have carried out, by their opcode.
  std::map<ibv_wr_opcode, std::uint32_t> carried_out;
  /// The errno with which queue pairs are not taken to RTR; 0: they are.
  int refuses_rtr = 0;
  /// The errno with which the next registrations fail, oldest first; 0 lets one pass.
  std::deque<int> registration_errors;
  /// The access flags of each registration.
  std::vector<unsigned> registered;

  /// What the library would answer with EBUSY, or would wait for without end.
  std::vector<std::string> misuse;
  /// It reaches only addresses whose first bits, this number of them, are those of its own address at GID
  /// index 1. Other peers are EHOSTUNREACH, as the kernel finds no route to them.
  unsigned reaches_bits = 0;
  bool reaches(const ibv_gid& peer) const;
  /// Packets with more bytes than this do not pass.
  std::uint32_t wire_mtu = 4096;
  /// No packet passes, see lose_link().
  bool link_lost = false;

  /// The NIC ends a queue pair by itself, and reports only what it must.
  void break_queue_pair(std::uint32_t number);
  /// From now on no packet of this NIC arrives, in either direction, though the port is ACTIVE: a bond that
  /// fails over, or a switch that restarts.
  void lose_link();
  /// The end of that. Queue pairs whose retries were over after that time are told that they were.
  void find_link(std::chrono::milliseconds after);
  /// Unplugs the cable, or plugs it in: the port's state, its event, and the packets.
  void set_port(ibv_port_state state);
  /// Whether the SEND that comes now has to wait for a page.
  bool handles_page_fault() {
    const std::uint32_t every = profile.page_fault_every;
    return every != 0 && ++sends_received % every == 0;
  }
  std::uint32_t sends_received = 0;
  std::uint32_t entries_of_reads() const {
    const ibv_device_attr& attr = profile.attributes;
    return static_cast<std::uint32_t>(attr.max_sge_rd > 0 ? attr.max_sge_rd : attr.max_sge);
  }

  /// Gives it this GID of RoCE v2 on IPv4 at that index, and removes what was there. An empty address
  /// removes only.
  void set_gid(std::uint32_t index, std::string_view ipv4, unsigned interface = 0);
  void report(ibv_event_type type);
};

/// All NICs of this machine. The newest machine is the one that the library sees.
class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Its address is 10.0.0.N for the Nth NIC, at GID index 1.
  Nic& add(const Profile& profile);
  static Machine* current();
  /// Whether the NICs can be connected by rdma_cm, too.
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
