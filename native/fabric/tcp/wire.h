// What two queue pairs of the tcp fabric say to each other (docs/wire/fabrics.md §9) after a greeting
// and its answer: frames. Only the shape is known here; queue_pair.h knows what may come when. Pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric/fabric.h"
#include "fabric/greeting.h"
#include "fabric/tcp/connect/address.h"
#include "fabric/tcp/tcp.h"

namespace rdma_rpc::fabric::tcp {

enum class Op : std::uint8_t {
  send = 1,     ///< a part of a message
  write = 2,    ///< a part of a WRITE
  read = 3,     ///< a READ, whole
  data = 4,     ///< a part of the answer to a READ
  ack = 5,      ///< all requests before `number` have been carried out
  refusal = 6,  ///< request `number` has not been; `extra` says why
  gone = 7,     ///< a request of the sender's has failed: its queue pair is in ERR, and nothing more comes
  bye = 8,      ///< the sender has ended the connection
};

enum Flag : std::uint8_t {
  flag_ack = 1u << 0,         ///< the request's last frame: an ack is wanted
  flag_invalidate = 1u << 1,  ///< send: `extra` is the key to invalidate
  flag_immediate = 1u << 2,   ///< write: `extra` is the immediate
  flag_vanished = 1u << 3,    ///< data: the memory is not there any more; no byte, and the end of the answer
};

inline constexpr std::uint32_t kFrameBytesMax = 64 << 10;
inline constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 30;
/// READs that a side may have open: unanswered, or answered in part.
inline constexpr std::uint32_t kReadsMax = 16;

struct Header {
  Op op = Op::ack;
  std::uint8_t flags = 0;
  std::uint16_t reserved = 0;
  std::uint32_t bytes = 0;   ///< behind this header
  std::uint32_t number = 0;  ///< of the request, counted from 0 in each direction
  std::uint32_t key = 0;     ///< write, read
  std::uint64_t addr = 0;    ///< write, read: where; send, data: offset in the message
  std::uint32_t total = 0;   ///< of the request or answer: bytes left, those of this frame included
  std::uint32_t extra = 0;
};
static_assert(sizeof(Header) == 32);

/// Null when a frame of this shape may exist, else what is wrong with it.
const char* why_malformed(const Header& header);

/// The statuses that a refusal can carry.
std::uint32_t refusal_code(WcStatus status);
std::optional<WcStatus> refusal_status(std::uint32_t code);

}  // namespace rdma_rpc::fabric::tcp
