// Implements the hostile peer: a plain queue pair that connects to a session and sends handmade frames. The
// peer can send anything at any time, and use any key. This code runs on the test's thread.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/sim/sim.h"
#include "session/limits.h"
#include "session/session.h"
#include "session/wire.h"

namespace rdma_rpc::session::test {

/// A handmade frame. Nothing is checked, because frames are meant to be wrong.
class FrameBytes {
 public:
  explicit FrameBytes(const wire::Header& header) { add(header); }
  template <class T>
  FrameBytes& add(const T& part) {
    append(&part, sizeof part);
    return *this;
  }
  FrameBytes& pad(std::size_t count, std::byte value = std::byte{'m'}) {
    for (; count > 0; --count) bytes.push_back(value);
    return *this;
  }
  std::vector<std::byte> bytes;

 private:
  void append(const void* part, std::size_t count);
};

class ScriptedPeer {
 public:
  ScriptedPeer(fabric::SimWorld& world, std::uint32_t inflight_max, std::uint32_t slot_bytes,
               std::size_t receives_posted = SIZE_MAX)
      : ScriptedPeer(world.open_device("scripted"), true, inflight_max, slot_bytes, receives_posted) {}
  /// Creates a peer on any device. With `active` it opens the connection, as a client does.
  ScriptedPeer(std::shared_ptr<fabric::Device> device, bool active, std::uint32_t inflight_max,
               std::uint32_t slot_bytes, std::size_t receives_posted = SIZE_MAX);

  void connect(Session& session);

  struct Received {
    std::vector<std::byte> bytes;
    wire::Frame frame;
    const char* error;
    std::uint32_t invalidated_rkey;
    wire::FrameType type() const { return static_cast<wire::FrameType>(frame.header.type); }
  };
  /// Returns the next received frame. The receive of the frame is reposted, but its credit is not returned.
  std::optional<Received> receive();
  /// Returns the next frame of this type, and drops frames of other types.
  std::optional<Received> receive(wire::FrameType type);

  void send(const std::vector<std::byte>& bytes, std::uint32_t invalidate_rkey = 0);
  void send(const FrameBytes& frame, std::uint32_t invalidate_rkey = 0) {
    send(frame.bytes, invalidate_rkey);
  }
  void request(std::uint32_t call, std::size_t message_bytes = 8, std::uint16_t credits = 0);
  void respond(std::uint32_t call, std::uint32_t status = 0, std::uint32_t invalidate_rkey = 0);
  void read(std::uint64_t addr, std::uint32_t bytes, std::uint32_t rkey) {
    transfer(fabric::Opcode::rdma_read, addr, bytes, rkey);
  }
  void write(std::uint64_t addr, std::uint32_t bytes, std::uint32_t rkey) {
    transfer(fabric::Opcode::rdma_write, addr, bytes, rkey);
  }
  /// Returns the status of the oldest completed send, READ or WRITE whose status was not returned yet.
  std::optional<fabric::WcStatus> outcome();
  bool alive() const { return qp_->state() == fabric::QpState::rts; }
  bool connected() {
    poll();
    return alive();
  }
  std::byte* memory() { return memory_->data(); }
  /// Binds a window of the peer's own memory, for an honest frame. Returns the key of the window.
  std::uint32_t expose(std::uint64_t offset, std::uint32_t bytes, std::uint32_t access);
  std::uint64_t address(std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t>(memory_->data()) + offset;
  }
  static constexpr std::size_t kMemoryBytes = 256 << 10;

 private:
  void transfer(fabric::Opcode opcode, std::uint64_t addr, std::uint32_t bytes, std::uint32_t rkey);
  void poll();
  void post_receive(std::uint32_t index);

  std::shared_ptr<fabric::Device> device_;
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::uint32_t stride_, receives_;
  std::unique_ptr<fabric::HostMemory> memory_, slab_;
  std::unique_ptr<fabric::MemoryRegion> region_, slab_region_;
  std::vector<std::unique_ptr<fabric::MemoryWindow>> windows_;
  std::unique_ptr<fabric::QueuePair> qp_;
  std::deque<Received> inbox_;
  std::deque<fabric::WcStatus> outcomes_;
};

}  // namespace rdma_rpc::session::test
