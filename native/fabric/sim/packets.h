// Implements the packets of UC and UD queue pairs of the simulated fabric. The network may lose, duplicate or
// delay each packet of a message separately. SimQueuePair (unreliable.cc) sends and receives these packets,
// on the world's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/fabric.h"

namespace rdma_rpc::fabric {

/// A message that has left its sender.
struct SimMessage {
  Opcode opcode = Opcode::send;
  bool solicited = false;
  std::uint32_t imm = 0;
  std::uint32_t source_qp = 0;
  std::uint64_t remote_addr = 0;  ///< UC WRITE
  std::uint32_t rkey = 0;         ///< UC WRITE
  std::uint32_t qkey = 0;         ///< UD
  std::uint8_t hop_limit = 0;     ///< UD
  Gid source{}, destination{};    ///< UD
  std::vector<std::byte> bytes;
};

/// One part of a message on its way to a queue pair.
struct SimPacket {
  std::uint64_t arrives_at = 0;
  std::shared_ptr<const SimMessage> message;
  std::size_t offset = 0, bytes = 0;

  bool is_first() const { return offset == 0; }
  bool is_last() const { return offset + bytes == message->bytes.size(); }
};

/// The message that a UC queue pair is receiving, and how many of its packets have arrived, in order.
struct SimAssembly {
  std::shared_ptr<const SimMessage> message;  ///< null between two messages
  std::size_t next = 0;                       ///< offset of the packet that must arrive next
};

}  // namespace rdma_rpc::fabric
