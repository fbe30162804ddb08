// Parses frames. This is the only place that decides whether the bytes of a peer are valid.
#include "session/wire.h"

#include "session/limits.h"

namespace rdma_rpc::session::wire {
namespace {

template <class T>
bool take(const std::byte* data, std::uint32_t bytes, std::uint32_t& at, T& out) {
  if (sizeof(T) > bytes - at) return false;
  std::memcpy(&out, data + at, sizeof(T));
  at += static_cast<std::uint32_t>(sizeof(T));
  return true;
}

const char* parse_message(const std::byte* data, std::uint32_t bytes, Frame& frame) {
  const std::uint8_t flags = frame.header.flags;
  std::uint32_t at = sizeof(Header);
  if ((flags & has_reply_buffer) != 0) {
    if (!take(data, bytes, at, frame.reply_buffer)) return "frame shorter than its reply buffer";
    if (frame.reply_buffer.length == 0) return "reply buffer of no bytes";
    if (frame.reply_buffer.addr + frame.reply_buffer.length < frame.reply_buffer.addr)
      return "reply buffer wraps around the address space";
  }
  std::uint32_t metadata_bytes = 0;
  std::uint64_t inlined = 0;
  if ((flags & has_metadata) != 0) {
    MetadataLength length;
    if (!take(data, bytes, at, length)) return "frame shorter than its metadata length";
    if (length.reserved != 0) return "reserved bits of the metadata length are set";
    if (length.bytes == 0) return "metadata flag without metadata";
    metadata_bytes = length.bytes;
  }
  if ((flags & has_gather_list) != 0) {
    GatherListHead head;
    if (!take(data, bytes, at, head)) return "frame shorter than its gather entry count";
    if (head.count == 0 || head.count > kGatherEntriesMax) return "gather entry count out of range";
    if (head.count > (bytes - at) / sizeof(GatherEntry)) return "frame shorter than its gather entries";
    frame.total = head.total;
    frame.gather_entry_count = head.count;
    frame.gather_entry_offset = at;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < head.count; ++i) {
      const GatherEntry gather_entry = gather_entry_at(data, frame, i);
      if (gather_entry.length == 0) return "gather entry of no bytes";
      if (gather_entry.addr + gather_entry.length < gather_entry.addr)
        return "gather entry wraps around the address space";
      if (gather_entry.inlined() && gather_entry.addr != 0) return "inline gather entry with an address";
      sum += gather_entry.length;
      if (gather_entry.inlined()) inlined += gather_entry.length;
    }
    if (sum != head.total) return "gather entries do not add up to the total";
    if (inlined == sum) return "gather entries without a key";
    at += head.count * static_cast<std::uint32_t>(sizeof(GatherEntry));
  }
  if ((flags & written) != 0) {
    Written length;
    if (!take(data, bytes, at, length)) return "frame shorter than its written length";
    if (length.reserved != 0) return "reserved bits of the written length are set";
    if (length.total == 0) return "written message of no bytes";
    frame.total = length.total;
  }
  if (metadata_bytes > bytes - at) return "metadata longer than the frame";
  frame.metadata_bytes = metadata_bytes;
  frame.metadata_offset = at;
  frame.message_offset = at + metadata_bytes;
  frame.message_bytes = bytes - frame.message_offset;
  if ((flags & has_gather_list) != 0 && inlined != 0) {
    if (inlined != frame.message_bytes) return "inline entries do not add up to the frame";
    frame.inlined_bytes = frame.message_bytes;
    frame.message_bytes = 0;
  }
  if ((flags & (has_gather_list | written)) != 0 && frame.message_bytes != 0) {
    return "message bytes in a frame with gather entries or a written message";
  }
  return nullptr;
}

}  // namespace

const char* parse(const std::byte* data, std::uint32_t bytes, Frame& frame) {
  if (bytes < sizeof(Header)) return "frame shorter than its header";
  std::memcpy(&frame.header, data, sizeof(Header));
  const Header& header = frame.header;
  frame.metadata_bytes = frame.message_bytes = frame.inlined_bytes = frame.total = frame.gather_entry_count =
      0;
  frame.metadata_offset = frame.message_offset = sizeof(Header);
  frame.bulk_number = 0;
  const std::uint8_t flags = header.flags;
  switch (static_cast<FrameType>(header.type)) {
    case FrameType::request:
      if ((flags & ~(has_reply_buffer | has_metadata | has_gather_list | lasting | part | aligned)) != 0) {
        return "request with unknown flags";
      }
      if ((flags & aligned) != 0 && (flags & has_gather_list) == 0)
        return "the flag of an aligned message in a request without gather entries";
      if ((flags & lasting) != 0 && (flags & (has_reply_buffer | has_gather_list)) == 0)
        return "the flag of lasting keys in a request that has no key";
      if (header.method == 0) return "request without a method";
      if (const char* why = parse_message(data, bytes, frame)) return why;
      if ((flags & part) != 0 && frame.metadata_bytes < sizeof(PartHeader)) return "part without its header";
      return nullptr;
    case FrameType::response:
      if ((flags & ~(has_metadata | written | not_run | aligned)) != 0) return "response with unknown flags";
      if ((flags & aligned) != 0 && (flags & written) == 0)
        return "the flag of an aligned message in a response that was not written";
      if (header.method > 16) return "response with an unknown status";
      if (header.timeout_us != 0) return "reserved bits of a response are set";
      if (const char* why = parse_message(data, bytes, frame)) return why;
      if (header.method != 0 && std::uint64_t{frame.message_bytes} + frame.total > kErrorTextMax) {
        return "status text longer than 1024 bytes";
      }
      return nullptr;
    case FrameType::cancel:
      if (bytes != sizeof(Header) || flags != 0 || header.timeout_us != 0) return "malformed cancel";
      if (header.method != 1 && header.method != 4) return "cancel with an unknown status";
      return nullptr;
    case FrameType::credit:
      if (bytes != sizeof(Header) || flags != 0) return "malformed credit";
      if (header.call != 0 || header.method != 0 || header.timeout_us != 0)
        return "reserved bits of a credit are set";
      return nullptr;
    case FrameType::reply_buffer_request:
      if (bytes != sizeof(Header) || flags != 0 || header.timeout_us != 0)
        return "malformed reply buffer request";
      if (header.method == 0) return "reply buffer request for no bytes";
      return nullptr;
    case FrameType::reply_buffer:
      if ((flags & ~(has_reply_buffer | lasting)) != 0 || flags == lasting || header.method != 0 ||
          header.timeout_us != 0)
        return "malformed reply buffer";
      if (bytes != sizeof(Header) + (flags != 0 ? sizeof(ReplyBuffer) : 0))
        return "reply buffer of a wrong length";
      return flags != 0 ? parse_message(data, bytes, frame) : nullptr;
    case FrameType::segment:
      if (flags != 0 || header.method != 0 || header.timeout_us != 0) return "malformed segment";
      if (bytes == sizeof(Header)) return "segment of no bytes";
      frame.message_bytes = bytes - frame.message_offset;
      return nullptr;
  }
  return "unknown frame type";
}

}  // namespace rdma_rpc::session::wire
