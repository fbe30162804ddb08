// The passive side without a listener: connections come from whoever listens in this process, perhaps on
// another thread, and are found by the first bytes of the token that they ask for. One table of the process
// has the doors of all devices. A door belongs to its device's thread; hand_over() is for any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/tcp/watch.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class Device;

class Door final : public Waiter {
 public:
  /// Null, and why, when the system refuses.
  static std::unique_ptr<Door> open(Device& device, std::string* error);
  ~Door() override;

  /// From now on this token leads here.
  void mark(Token* token) const;
  /// From any thread. False: the token leads to no door.
  static bool hand_over(UniqueFd& fd, const Greeting& greeting);

  void ready() override;
  void expired() override {}

 private:
  struct Arrival {
    UniqueFd fd;
    Greeting greeting;
  };

  explicit Door(Device& device) : device_(device) {}

  Device& device_;
  UniqueFd bell_;
  std::uint32_t number_ = 0;
  std::vector<Arrival> arrived_;  ///< under the table's lock
};

}  // namespace rdma_rpc::fabric::tcp
