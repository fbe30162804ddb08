// Defines the words that JS and native code exchange through shared arrays. This file mirrors
// runtime/native/words.ts, which describes each word. A test compares the two files through
// NativeModule.boundary().
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace rdma_rpc::session::boundary {

namespace sub {
enum : int {
  op,
  session,
  call,
  method,
  status = method,
  slot,
  metadata_bytes,
  message_bytes,
  timeout_us,
  words
};
}
enum class SubOp : std::int32_t { request = 1, response = 2, part = 3 };
/// This bit of a response's `status` word says that the handler did not run.
inline constexpr std::int32_t kNotRun = 1 << 8;
/// Bits of a bulk submission. kAligned: its gather entries make up an aligned message. kReplyBufferOnly: the
/// response is refused if it does not fit the reply buffer of its call.
inline constexpr std::uint32_t kAligned = 1, kReplyBufferOnly = 2;

namespace ev {
// A word that several kinds of events use for different values has a name for each use.
enum : int {
  kind,
  session,
  call,
  token = call,
  key_low = call,
  method,
  status = method,
  pending_release = method,
  key_high = method,
  region,
  offset,
  aligned = offset,
  metadata_bytes,
  message_bytes,
  timeout_us,
  reason = timeout_us,
  refused_bytes = timeout_us,
  metadata_offset,
  processed,
  part = processed,
  receive_slot,
  words
};
}  // namespace ev
enum class EvKind : std::int32_t {
  request = 1,
  settled,
  failed,
  cancelled,
  sent,
  session_down,
  slots_free,
  evicted,
  session_up,
  part_waits,
  released,
  memory_free,
  memory_short,
  device_gone
};
enum class Reason : std::int32_t {
  session_lost = 1,
  cancelled,
  deadline,
  no_memory,
  too_large,
  registration,
  staging,
  detached,
  registering
};
/// Says whether the handler of a call can have run.
enum class Processed : std::int32_t { no = 0, maybe = 1, yes = 2 };
namespace gather_entry {
/// Words of a gather entry of a bulk submission whose entries all lie in the arena. `block` is 0 for the
/// encode scratch buffer. `lent` says that the application has leased the block.
enum : int { block, offset, bytes, lent, words };
}  // namespace gather_entry
/// Size of the encode scratch buffer of a context. JS encodes the short parts of a large message there, which
/// is everything except the large values. At submission these parts are copied to an arena block, because
/// encoding in a block directly costs more. The buffer is at least as large as such a block.
inline constexpr std::uint32_t kScratchBytes = 4096;
/// The key of a gather entry in arena memory that the application has leased.
inline constexpr int kLeasedMemory = -1;
/// The key of a gather entry of application memory that is copied when the message is submitted.
inline constexpr int kCopiedMemory = -2;
/// Bits of a FAILED event's `pending_release` word.
enum PendingRelease : std::int32_t { pending_slot = 1, pending_reply_buffer = 2 };

namespace ctl {
enum : int {
  staged,
  free_slots,
  in_callback,
  want_slots,
  want_memory,
  sessions,
  retries,
  short_bytes,
  words = 16
};
}

namespace slots {
/// By table index, the number of send slots that native code holds for each session, and whether JS waits for
/// a slot.
enum : int { held, wanted, words };
}  // namespace slots

/// Receive slots with this number or a higher one are indexes of the context's short messages.
inline constexpr std::uint32_t kShortMessageSlots = 1u << 24;
/// JS accesses receive slots in windows. Each window is an ArrayBuffer that is created when JS first reads in
/// it. V8 counts the bytes of such buffers and starts a collection when enough have been created. With
/// windows, it counts only the memory that sessions have used. The first window has 4 slots; each further
/// window has as many slots as all windows before it.
inline constexpr std::uint32_t kFirstWindowBits = 2;
constexpr std::uint32_t receive_window(std::uint32_t receive_slot) {
  constexpr std::uint32_t first = (1u << kFirstWindowBits) - 1;
  return static_cast<std::uint32_t>(std::bit_width(receive_slot | first)) - kFirstWindowBits;
}
/// Returns the first slot of the window that contains `receive_slot`.
constexpr std::uint32_t window_start(std::uint32_t receive_slot) {
  const std::uint32_t window = receive_window(receive_slot);
  return window == 0 ? 0 : 1u << (window + kFirstWindowBits - 1);
}
/// Returns the end of the window that contains this receive slot. The window can end beyond the last slot.
constexpr std::uint32_t window_end(std::uint32_t receive_slot) {
  return 1u << (receive_window(receive_slot) + kFirstWindowBits);
}
/// `region` of an event whose bytes lie in its receive slot. The slot is in a window of the session's
/// receives, or it is one of the context's short messages.
inline constexpr std::int32_t kReceiveSlab = -1;
/// `region` of an event whose message came in segments. The message lies in the memory of reassembled
/// messages, and its metadata in the receive slot.
inline constexpr std::int32_t kReassembledMessage = -2;

struct Event {
  std::int32_t word[ev::words] = {};

  static Event of(EvKind kind, std::uint32_t session = 0, std::uint32_t call = 0) {
    Event event;
    event.set(ev::kind, kind).set(ev::session, session).set(ev::call, call);
    return event;
  }
  /// Creates the event that tells JS why a call has ended without a response.
  static Event failed(std::uint32_t session, std::uint32_t call, Reason reason, Processed processed) {
    return of(EvKind::failed, session, call).set(ev::reason, reason).set(ev::processed, processed);
  }
  /// Sets the word at index `at` (an enumerator of ev) to the 32 bits of a number, a flag or an enumerator.
  template <class T>
  Event& set(int at, T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    word[at] = static_cast<std::int32_t>(value);
    return *this;
  }
  bool is(EvKind kind) const { return word[ev::kind] == static_cast<std::int32_t>(kind); }
};
static_assert(sizeof(Event) == 48);

}  // namespace rdma_rpc::session::boundary
