// Simulates NICs for a process that is not a test of GoogleTest, such as Node. LD_PRELOAD loads this library
// before libibverbs. test/nic uses it, and nic.h describes the threads.
//
// RDMA_RPC_TEST_NICS lists the NICs: `mlx5@10.1.0.1/24,hns,capable!`. Each entry begins with the name of a
// profile of profiles.cc. A `!` behind the name means a NIC that is the same but has no windows. A NIC with
// an address has it on a network interface of its own, and this host then has no other interfaces; the NIC
// reaches the network of this address alone. With `?` in front of its address, as in `mlx5@?10.1.0.1/24`, it
// reaches no other address of its network, as with a wrong VLAN. With `~` there, all NICs have rdma_cm, and
// its requests from this NIC are lost on the way, as when a switch drops them; with `-`, only its first
// request is lost. Names of devices are nic0, nic1 and so on.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fabric/suite/allocation_count.h"
#include "nic/device/host.h"
#include "nic/device/huge_pages.h"
#include "nic/device/nic.h"
#include "nic/device/profiles.h"

// Here the NICs do not count allocations, and the kernel provides the huge pages.
namespace rdma_rpc::fabric::test {
std::uint64_t allocations_so_far() { return 0; }
void forget_allocations_since(std::uint64_t) {}
}  // namespace rdma_rpc::fabric::test

namespace rdma_rpc::nic {

HugePages* HugePages::current() { return nullptr; }
bool HugePages::has_all(const void*, std::size_t) const { return true; }

namespace {

void add(const std::string& word, Machine& machine, Host*& host) {
  const std::size_t at = word.find('@'), slash = word.find('/');
  std::string name = word.substr(0, at);
  const bool without_windows = name.ends_with('!');
  if (without_windows) name.pop_back();
  Profile profile = profile_named(name);
  if (without_windows) profile.allocates_windows = false;
  const auto number = static_cast<unsigned>(machine.nics().size());
  profile.name = "nic" + std::to_string(number);
  Nic& nic = machine.add(profile);
  if (at == std::string::npos) return;
  // The object is never deleted, because threads of Node may ask for it until the process ends.
  if (host == nullptr) host = new Host;
  const char mark = word[at + 1];
  const bool reaches_none = mark == '?', loses_all = mark == '~', loses_first = mark == '-';
  const std::size_t begin = at + (reaches_none || loses_all || loses_first ? 2 : 1);
  const std::string ip = word.substr(begin, slash - begin);
  const unsigned prefix =
      slash == std::string::npos ? 32u : static_cast<unsigned>(std::stoul(word.substr(slash + 1)));
  host->addresses.push_back({"rail" + std::to_string(number), ip, number + 100, prefix});
  nic.set_gid(1, ip, number + 100);
  nic.reaches_bits = reaches_none ? 32 : prefix;
  nic.requests_to_lose = loses_all ? UINT32_MAX : loses_first ? 1 : 0;
  machine.has_manager = machine.has_manager || loses_all || loses_first;
}

__attribute__((constructor)) void make_nics() {
  const char* words = std::getenv("RDMA_RPC_TEST_NICS");
  if (words == nullptr) return;
  auto* machine = new Machine;  // never deleted, like the host
  Host* host = nullptr;
  std::string rest = words;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    add(rest.substr(0, comma), *machine, host);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
}

}  // namespace
}  // namespace rdma_rpc::nic
