// Encodes and decodes the frames that two queue pairs of the tcp fabric exchange after the connect message
// and its answer (docs/wire/fabrics.md §9). This file checks only the form of a frame. queue_pair.h decides
// which frame is allowed at which time. All functions here are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric/connect_message.h"
#include "fabric/fabric.h"
#include "fabric/tcp/connect/address.h"
#include "fabric/tcp/tcp.h"

namespace rdma_rpc::fabric::tcp {

enum class Op : std::uint8_t {
  send = 1,       ///< part of a message
  write = 2,      ///< part of a WRITE
  read = 3,       ///< a whole READ
  data = 4,       ///< part of the response to a READ
  ack = 5,        ///< all requests before `number` have been executed
  refusal = 6,    ///< request `number` was not executed; `extra` says why
  gone = 7,       ///< a request of the sender has failed: its queue pair is in ERR and sends nothing more
  bye = 8,        ///< the sender has ended the connection
  atomic = 9,     ///< a whole atomic; its payload is an AtomicOperands, and DATA of 8 bytes is its answer
  features = 10,  ///< `extra` has the features of the sender; sent only as answer to the question
};

enum Flag : std::uint8_t {
  flag_ack = 1u << 0,         ///< last frame of the request: asks for an ack
  flag_invalidate = 1u << 1,  ///< send: `extra` is the key to invalidate
  flag_immediate = 1u << 2,   ///< write, send: `extra` is the immediate
  /// data: the memory no longer exists; the frame has no payload and ends the response.
  flag_memory_gone = 1u << 3,
};

inline constexpr std::uint32_t kFrameBytesMax = 64 << 10;
inline constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 30;
/// Limit of a side's READs that are unanswered, or answered in part.
inline constexpr std::uint32_t kReadsMax = 16;

struct Header {
  Op op = Op::ack;
  std::uint8_t flags = 0;
  std::uint16_t reserved = 0;
  std::uint32_t bytes = 0;   ///< length of the payload behind this header
  std::uint32_t number = 0;  ///< number of the request, counted from 0 in each direction
  std::uint32_t key = 0;     ///< write, read
  std::uint64_t addr = 0;    ///< write, read: address; send, data: offset in the message
  std::uint32_t total = 0;   ///< remaining bytes of the request or response, including those of this frame
  std::uint32_t extra = 0;
};
static_assert(sizeof(Header) == 32);

struct AtomicOperands {
  std::uint64_t compare_add, swap;
};
/// Header::extra of an atomic.
inline constexpr std::uint32_t kCompareAndSwap = 0, kFetchAndAdd = 1;

/// Features that earlier releases lack. These features are used only with a peer whose features frame
/// contains them.
enum FeatureBit : std::uint32_t { feature_atomics = 1u << 0, feature_send_immediate = 1u << 1 };
inline constexpr std::uint32_t kFeatureBits = feature_atomics | feature_send_immediate;
/// Key and address of a WRITE of no bytes that asks for a features frame. Every release executes such a WRITE
/// and acknowledges it. A release that knows the question sends its features before the ack.
inline constexpr std::uint32_t kFeaturesKey = 0x74616566;           // "feat"
inline constexpr std::uint64_t kFeaturesAddr = 0x3f73657275746165;  // "eatures?"

/// Returns null when a frame of this form is allowed, otherwise an error text.
const char* why_malformed(const Header& header);

/// These functions convert the statuses that a refusal can contain.
std::uint32_t refusal_code(WcStatus status);
std::optional<WcStatus> refusal_status(std::uint32_t code);

}  // namespace rdma_rpc::fabric::tcp
