// Opens a unix socket to which tests connect queue pairs of shm-fd. The socket works like a server's
// listener: it reads the first bytes of each connection, and hands the connection over.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fabric/incoming.h"
#include "fabric/shm/shm.h"

namespace rdma_rpc::fabric::test {

class ShmEntrance {
 public:
  ShmEntrance() {
    char directory[] = "/tmp/rdma-rpc-entrance-XXXXXX";
    EXPECT_NE(::mkdtemp(directory), nullptr);
    directory_ = directory;
    path_ = directory_ + "/socket";
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path_.data(), path_.size());
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    EXPECT_EQ(::listen(listener_.get(), 1024), 0);
  }
  ~ShmEntrance() {
    ::unlink(path_.c_str());
    ::rmdir(directory_.c_str());
  }
  ShmEntrance(const ShmEntrance&) = delete;
  ShmEntrance& operator=(const ShmEntrance&) = delete;

  const std::string& path() const { return path_; }
  std::vector<std::byte> to(std::span<const std::byte> address) const {
    std::string error;
    auto via = shm_address_via(address, path_, &error);
    EXPECT_EQ(error, "");
    return via;
  }
  /// See IncomingConnections.
  std::string admit() { return incoming_.admit(listener_.get()); }

 private:
  std::string directory_, path_;
  UniqueFd listener_;
  IncomingConnections incoming_;
};

}  // namespace rdma_rpc::fabric::test
