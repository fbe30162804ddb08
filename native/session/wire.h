// Encodes and decodes the frames that two sessions exchange by SEND. docs/wire/frames.md defines them. This
// file is their C++ form, and test/native/wire.ts is their TypeScript form. test/golden/frames.txt contains
// the bytes with which both forms are tested. A change here breaks peers. Either add a bit to `feature` in
// runtime/control/frames.ts, or give `version` there its next value. Never reuse a number. This code is
// called by the session on the context's thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rdma_rpc::session::wire {

static_assert(std::endian::native == std::endian::little, "frames are little-endian and written in place");

enum class FrameType : std::uint8_t {
  request = 1,
  response = 2,
  cancel = 3,
  credit = 4,
  reply_buffer_request = 5,
  reply_buffer = 6,
  segment = 7,
};

enum Flag : std::uint8_t {
  has_reply_buffer = 1,  ///< request, reply buffer: a ReplyBuffer structure follows the header
  has_metadata = 2,      ///< request, response: a MetadataLength structure follows
  /// Request: a GatherListHead and gather entries follow. The entries name the memory of the message, which
  /// is not in the frame.
  has_gather_list = 4,
  written = 8,   ///< response: the message was written into the reply buffer; a Written structure follows
  not_run = 16,  ///< response: the handler did not run
  /// Request, reply buffer: the keys do not belong to windows, so the answer must not invalidate a key.
  lasting = 32,
  part = 64,  ///< request: part of a stream; its metadata begins with a part header
  /// Request with gather entries, response that is written: the message is aligned (WIRE §2.4).
  aligned = 128,
};

/// The receiver stores the gather entries of an aligned message at multiples of this number.
inline constexpr std::uint32_t kAlignment = 64;
constexpr std::uint64_t aligned_offset(std::uint64_t at) {
  return (at + kAlignment - 1) & ~std::uint64_t{kAlignment - 1};
}
/// Returns the limit of the size of the aligned layout of a message of at most `message_bytes` bytes.
constexpr std::uint64_t aligned_bytes_max(std::uint64_t message_bytes) {
  return message_bytes + message_bytes / 8 + 4096;
}

/// Every frame begins with this header (WIRE §2).
struct Header {
  std::uint8_t type;
  std::uint8_t flags;
  std::uint16_t credits;  ///< number of receives that the sender has reposted since its last frame
  std::uint32_t call;     ///< slot | generation << 12; 0 in credit frames
  /// The method id of a request, the status of a response or cancel, or the number of bytes of a
  /// reply_buffer_request.
  std::uint32_t method;
  std::uint32_t timeout_us;  ///< request: time left, 0 for no limit; 0 in other frames

  /// Returns a header with 0 credits, which the send queue adds later. `flags` are bits of Flag.
  static Header of(FrameType type, std::uint32_t call = 0, std::uint32_t method = 0, int flags = 0,
                   std::uint32_t timeout_us = 0) {
    return {static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(flags), 0, call, method, timeout_us};
  }
};
static_assert(sizeof(Header) == 16 && alignof(Header) == 4);

/// Memory to which the receiver of the frame may write, for one answer.
struct ReplyBuffer {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t rkey;
};
static_assert(sizeof(ReplyBuffer) == 16);

struct MetadataLength {
  std::uint32_t bytes;
  std::uint32_t reserved;  ///< always 0
};
static_assert(sizeof(MetadataLength) == 8);

struct GatherListHead {
  std::uint32_t total;  ///< sum of the lengths
  std::uint32_t count;  ///< 1 to kGatherEntriesMax
};
struct GatherEntry {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t rkey;  ///< 0 when the bytes are in the frame
  bool inlined() const { return rkey == 0; }
};
static_assert(sizeof(GatherListHead) == 8 && sizeof(GatherEntry) == 16);

struct Written {
  std::uint32_t total;
  std::uint32_t reserved;  ///< always 0
};
static_assert(sizeof(Written) == 8);

/// The start of a part's metadata (WIRE §8). The session checks that the header is complete, and uses kind
/// and count only for its counters.
struct PartHeader {
  std::uint32_t stream;
  std::uint32_t sequence;
  std::uint16_t count;  ///< number of messages
  std::uint8_t kind;
  std::uint8_t flags;
};
static_assert(sizeof(PartHeader) == 12);
/// Values of PartHeader::kind. kOpen: the call that lasts as long as its stream. kPull: a call whose answer
/// brings messages.
inline constexpr std::uint8_t kOpen = 1, kPull = 3;
/// Reads the part header from metadata of `bytes` bytes. All fields are 0 when the metadata is too short.
inline PartHeader part_header(const std::byte* metadata, std::uint32_t bytes) {
  PartHeader header{};
  if (bytes >= sizeof header) std::memcpy(&header, metadata, sizeof header);
  return header;
}
/// Returns how many messages the response to a part contains, given its metadata and status.
inline std::uint32_t messages_answered(const std::byte* metadata, std::uint32_t bytes, std::uint32_t status) {
  const PartHeader header = part_header(metadata, bytes);
  return status == 0 && header.kind == kPull ? header.count : 0;
}

inline constexpr std::uint32_t kSlotBits = 12;
inline constexpr std::uint32_t kGenerationMask = (1u << 20) - 1;
constexpr std::uint32_t call_word(std::uint32_t slot, std::uint32_t generation) {
  return slot | generation << kSlotBits;
}
constexpr std::uint32_t call_slot(std::uint32_t call) { return call & ((1u << kSlotBits) - 1); }
constexpr std::uint32_t call_generation(std::uint32_t call) { return call >> kSlotBits; }

/// A parsed frame. Everything of fixed size is copied, because the sender may still be able to change the
/// received bytes.
struct Frame {
  Header header;
  ReplyBuffer reply_buffer;
  std::uint32_t metadata_bytes, metadata_offset;
  std::uint32_t message_bytes, message_offset;  ///< in the frame; 0 bytes when the message is elsewhere
  /// Number of bytes of the gather entries whose content is in the frame, beginning at `message_offset`.
  std::uint32_t inlined_bytes;
  /// For a request with gather entries, the sum of their lengths; for a written response, its bytes in the
  /// reply buffer.
  std::uint32_t total;
  std::uint32_t gather_entry_count, gather_entry_offset;
  std::uint64_t bulk_number;  ///< sealed session: number of the bulk message
};

/// Parses `bytes` bytes. Returns null when they are a valid frame, otherwise an error text; the session must
/// then end.
const char* parse(const std::byte* data, std::uint32_t bytes, Frame& frame);

/// Returns gather entry `index` of a parsed frame. parse() has validated its length and address range, but no
/// key.
inline GatherEntry gather_entry_at(const std::byte* data, const Frame& frame, std::uint32_t index) {
  GatherEntry gather_entry;
  std::memcpy(&gather_entry, data + frame.gather_entry_offset + index * sizeof(GatherEntry),
              sizeof gather_entry);
  return gather_entry;
}

}  // namespace rdma_rpc::session::wire
