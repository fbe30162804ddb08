// See wire.h.
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {
namespace {

/// The fields that an operation uses. All other fields must be 0.
struct Shape {
  std::uint8_t flags;
  bool payload, key, addr, total;
};

const Shape* shape_of(Op op) {
  static constexpr Shape kSend{flag_ack | flag_invalidate | flag_immediate, true, false, true, true};
  static constexpr Shape kWrite{flag_ack | flag_immediate, true, true, true, true};
  static constexpr Shape kRead{flag_ack, false, true, true, true};
  static constexpr Shape kData{flag_memory_gone, true, false, true, true};
  static constexpr Shape kAtomic{flag_ack, true, true, true, true};
  static constexpr Shape kBare{0, false, false, false, false};
  switch (op) {
    case Op::send:
      return &kSend;
    case Op::write:
      return &kWrite;
    case Op::read:
      return &kRead;
    case Op::data:
      return &kData;
    case Op::atomic:
      return &kAtomic;
    case Op::features:
    case Op::ack:
    case Op::refusal:
    case Op::gone:
    case Op::bye:
      return &kBare;
  }
  return nullptr;
}

const char* why_no_atomic(const Header& header) {
  if (header.bytes != sizeof(AtomicOperands) || header.total != header.bytes)
    return "an atomic does not have two operands";
  if (header.addr % sizeof(std::uint64_t) != 0) return "an atomic is not aligned to 8 bytes";
  return header.extra > kFetchAndAdd ? "an atomic of an unknown kind" : nullptr;
}

}  // namespace

const char* why_malformed(const Header& header) {
  const Shape* shape = shape_of(header.op);
  if (shape == nullptr) return "a frame of an unknown kind";
  if (header.reserved != 0) return "a frame's reserved bytes are not 0";
  if ((header.flags & ~shape->flags) != 0) return "a frame has flags that its kind does not have";
  if (header.bytes > kFrameBytesMax) return "a frame is longer than 65536 bytes";
  if (!shape->payload && header.bytes != 0) return "a frame of a kind without payload announces payload";
  if (!shape->key && header.key != 0) return "a frame has a key that its kind does not have";
  if (!shape->addr && header.addr != 0) return "a frame has an address that its kind does not have";
  if (!shape->total && header.total != 0) return "a frame has a length that its kind does not have";
  if (header.total > kMessageBytesMax) return "a message is longer than 1 GiB";
  if (header.bytes > header.total) return "a frame is longer than what is left of its message";
  const bool memory_gone = (header.flags & flag_memory_gone) != 0;
  if (memory_gone && header.bytes != 0) return "an answer for memory that no longer exists carries bytes";
  if (shape->payload && header.bytes == 0 && header.total != 0 && !memory_gone)
    return "a frame in the middle of a message is empty";
  const bool last = header.op == Op::read || header.bytes == header.total;
  if (!last && (header.flags & flag_ack) != 0) return "a frame that is not the last one asks for an ack";
  constexpr std::uint8_t kBoth = flag_invalidate | flag_immediate;
  if ((header.flags & kBoth) == kBoth) return "a frame has both a key to invalidate and an immediate";
  if (header.op == Op::atomic) return why_no_atomic(header);
  const bool has_extra = (header.flags & kBoth) != 0 || header.op == Op::refusal || header.op == Op::features;
  if (!has_extra && header.extra != 0) return "a frame has an extra word that its kind does not have";
  if (header.op == Op::data && header.total == 0) return "a DATA frame answers a READ with no bytes";
  const bool last_word = header.op == Op::gone || header.op == Op::bye;
  if (header.op == Op::features && header.number != 0)
    return "a FEATURES frame has a number, which must be 0";
  if (last_word && header.number != 0) return "a GONE or BYE frame has a number, which must be 0";
  return nullptr;
}

std::uint32_t refusal_code(WcStatus status) {
  switch (status) {
    case WcStatus::rnr_retry_exc_err:
      return 1;
    case WcStatus::rem_access_err:
      return 2;
    default:
      return 3;
  }
}

std::optional<WcStatus> refusal_status(std::uint32_t code) {
  switch (code) {
    case 1:
      return WcStatus::rnr_retry_exc_err;
    case 2:
      return WcStatus::rem_access_err;
    case 3:
      return WcStatus::rem_inv_req_err;
    default:
      return std::nullopt;
  }
}

}  // namespace rdma_rpc::fabric::tcp
