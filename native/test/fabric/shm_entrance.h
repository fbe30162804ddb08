// A unix socket at which queue pairs by descriptors are dialled in tests: it does what a server's listener
// does, reads what each connection begins with, and hands it over.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fabric/door.h"
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
  /// What there is to do. Returns what hand_over() said of the last one, or "nobody".
  std::string admit() {
    while (UniqueFd fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)}) {
      guests_.push_back({std::move(fd)});
    }
    std::string told = "nobody";
    std::erase_if(guests_, [&told](Guest& guest) {
      const ssize_t got =
          ::recv(guest.fd.get(), guest.said + guest.have, sizeof guest.said - guest.have, MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) return false;
      if (got <= 0) return true;
      guest.have += static_cast<std::size_t>(got);
      if (guest.have < sizeof guest.said) return false;
      told = hand_over(guest.fd.get(), guest.said);
      return true;
    });
    return told;
  }

 private:
  struct Guest {
    UniqueFd fd;
    std::byte said[kGreetingBytes]{};
    std::size_t have = 0;
  };
  std::string directory_, path_;
  UniqueFd listener_;
  std::vector<Guest> guests_;
};

}  // namespace rdma_rpc::fabric::test
