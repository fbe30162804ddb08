// Defines the network interfaces of this host, as a test defines them. The getifaddrs() and if_nametoindex()
// of this program replace those of the C library, see nic.h. Without a script they return the kernel's
// interfaces.
#pragma once

#include <string>
#include <vector>

namespace rdma_rpc::nic {

class Host {
 public:
  Host();
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  static const Host* current();

  struct Address {
    std::string interface, ip;  ///< IPv4
    unsigned index;             ///< of the interface
    unsigned prefix = 24;       ///< bits of the address that name its network
  };
  std::vector<Address> addresses;
};

}  // namespace rdma_rpc::nic
