// The device owns the keys, the listener and the sockets without a queue pair, and creates everything else.
// This code runs on one thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fabric/acceptor.h"
#include "fabric/fabric.h"
#include "fabric/reactor.h"
#include "fabric/software/memory.h"
#include "fabric/tcp/connect/lingering_sockets.h"
#include "fabric/tcp/connect/listener.h"
#include "fabric/tcp/queue/path_watch.h"
#include "fabric/tcp/tcp.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class QueuePair;

class Device final : public fabric::Device {
 public:
  Device(const TcpOptions& options, std::uint32_t key_seed);
  /// Opens the reactor. Returns false when the system refuses.
  bool open() { return reactor_.open(); }

  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) override;
  std::unique_ptr<MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                       std::string* error) override;
  std::unique_ptr<MemoryWindow> alloc_mw() override;
  std::unique_ptr<fabric::CompletionQueue> create_cq(std::uint32_t entries) override;
  std::unique_ptr<fabric::QueuePair> create_qp(fabric::CompletionQueue& cq, const QpOptions& options,
                                               std::string* error) override;
  DeviceCounters counters() const override { return protection_.counters; }

  // The following members are for the other classes of this folder.
  const TcpOptions& options() const { return options_; }
  DeviceCounters& counts() { return protection_.counters; }
  software::Protection& protection() { return protection_; }
  software::KeyTable& keys() { return protection_.keys; }
  Reactor& reactor() { return reactor_; }
  LingeringSockets& lingering_sockets() { return lingering_sockets_; }
  PathTimer& path_timer() { return path_timer_; }
  const std::vector<QueuePair*>& queue_pairs() const { return queue_pairs_; }
  /// Returns the queue pair with this token, or null.
  QueuePair* find(const Token& token) const;
  /// Takes a connection whose connect message has been read.
  void hand_to_queue_pair(UniqueFd fd, const ConnectMessage& message);
  void forget(const QueuePair& qp) {
    std::erase(queue_pairs_, &qp);
    path_timer_.forgot();
  }
  /// Returns the buffer for reading headers and small payloads. The buffer is empty between two reads.
  std::span<std::byte> prefetch() { return prefetch_; }
  /// Returns the buffer for bytes that are discarded. The buffer is as large as a frame.
  std::span<std::byte> scrap() { return scrap_; }

 private:
  bool be_reachable(Address* address, std::string* error);

  const TcpOptions options_;
  Capabilities capabilities_;
  software::Protection protection_;
  Reactor reactor_;
  LingeringSockets lingering_sockets_{reactor_};
  PathTimer path_timer_{*this};
  // After a passive queue pair has been created, exactly one of the two exists.
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<QueuePair*> queue_pairs_;
  std::uint32_t last_qp_num_ = 0;
  std::array<std::byte, 16 << 10> prefetch_;
  std::array<std::byte, kFrameBytesMax> scrap_;
};

}  // namespace rdma_rpc::fabric::tcp
