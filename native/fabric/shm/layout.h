// What lies in shared memory: the one definition of the bytes that two processes agree on. Included by
// everything in this folder; no code of its own runs on any thread.
//
// Three kinds of segment, each a memfd:
//  - DeviceSegment, one per device. Peers can only read it (F_SEAL_FUTURE_WRITE): tables of keys and
//    memories, and one line per completion queue that says whether its thread sleeps and where it ran.
//  - Announcements, one per device unless peers get descriptors: a bit per queue pair, set by its peer.
//  - QpSegment, one per queue pair, owned by the receiving side and written by its one peer: a ring of
//    64-byte cells that carries messages, the list of posted receives, and the peer's hazard word.
//
// The owner of a segment keeps private copies of what it wrote and never reads that back; what the peer
// writes is read once and checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fabric/greeting.h"
#include "fabric/shm/shared_words.h"

namespace rdma_rpc::fabric::shm {

inline constexpr std::uint32_t kMagic = 0x6d687372;  // "rshm"
inline constexpr std::uint32_t kLayoutVersion = 3;
inline constexpr std::size_t kCacheLine = 64;

using Word = SharedWord<std::uint32_t>;
using LongWord = SharedWord<std::uint64_t>;
static_assert(Word::is_always_lock_free && LongWord::is_always_lock_free,
              "shared words must be address-free");

struct Header {
  std::uint32_t magic;
  std::uint32_t version;
  Token token;  ///< random; the address blob repeats it
};

// ---- DeviceSegment ----

inline constexpr std::uint32_t kPollersMax = 16;
inline constexpr std::uint32_t kMemoriesMax = 1024;
/// A key is its index in the table (high bits) and a generation, so that a stale key finds another
/// generation.
inline constexpr std::uint32_t kKeyGenerationBits = 18;
inline constexpr std::uint32_t kKeysMax = 1u << (32 - kKeyGenerationBits);
/// TableKey::memory and PostedReceive::memory: not in alloc_memory() memory, reached by address through the
/// kernel.
inline constexpr std::uint32_t kNoMemory = ~0u;

/// A completion queue's thread.
struct alignas(kCacheLine) Poller {
  Word sleeping;  ///< 0, or the number of this sleep: a peer that has rung for it need not ring again
  Word cpu;       ///< where it last ran
};

/// Memory of alloc_memory() that peers may map.
struct alignas(kCacheLine) TableMemory {
  LongWord serial;  ///< never reused; 0: no memory here
  LongWord addr;
  LongWord bytes;
  Word fd;
};

/// A region or window with remote rights.
struct alignas(kCacheLine) TableKey {
  Word key;     ///< 0: nothing here. Written last when granted, first when revoked.
  Word qp_num;  ///< the owner's queue pair that may use it; 0: any
  Word access;
  Word memory;
  LongWord addr;
  LongWord length;
};

struct DeviceSegment {
  alignas(kCacheLine) Header header;
  Poller pollers[kPollersMax];
  TableMemory memories[kMemoriesMax];
  TableKey keys[kKeysMax];
};

// ---- Announcements ----

/// Queue pairs of a device at once: 14 bits, as sessions of a context.
inline constexpr std::uint32_t kQueuePairsMax = 1u << 14;
inline constexpr std::uint32_t kPlacesPerWord = 64;
inline constexpr std::uint32_t kPlaceWords = kQueuePairsMax / kPlacesPerWord;
inline constexpr std::uint32_t kPlaceGroups = kPlaceWords / kPlacesPerWord;

struct Announcements {
  alignas(kCacheLine) Header header;
  /// A bit for each word of `places` that has one.
  alignas(kCacheLine) LongWord groups[kPlaceGroups];
  /// A bit for each queue pair, by AddressBlob::place.
  alignas(kCacheLine) LongWord places[kPlaceWords];
};

// ---- The address blob of a queue pair ----

/// Fixed size, host byte order (both sides are on this host). Everything in it is checked by connect(). The
/// active side by descriptors gets the path to dial behind it (shm_address_via()).
struct AddressBlob {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t pid;
  std::uint32_t qp_num;
  std::uint64_t start_ticks;  ///< of the process, against reuse of its pid
  Token device_token;
  Token qp_token;
  std::uint64_t token_addr;  ///< where the process has device_token in its own memory: what process_vm_readv
                             ///< is tried on
  std::uint32_t device_fd;
  std::uint32_t qp_fd;
  std::uint32_t pipe_fd;
  std::uint32_t pipe_serial;  ///< of that pipe among those of the device
  std::uint32_t poller;       ///< index in DeviceSegment::pollers
  std::uint32_t announcements_fd;
  std::uint32_t place;           ///< of the queue pair in Announcements::places
  std::uint32_t receive_slots;   ///< a power of two
  std::uint32_t lap_cells;       ///< see QpSegment; 1 to those of the ring
  std::uint32_t by_descriptors;  ///< 1: what this has of a process and its descriptors is 0, all comes over
                                 ///< a control connection (control_connection.h)
};
static_assert(sizeof(AddressBlob) <= 512);

// ---- QpSegment ----

enum class CellKind : std::uint8_t { send = 1, send_with_inv = 2, write_with_imm = 3 };

/// First cell of a message, stored last. Its number is counted from 1 on and has 48 bits, so that what a cell
/// has kept from laps long ago is never taken for the next message: at 10 million cells a second they last 10
/// months.
struct CellHeader {
  std::uint32_t number_low;
  std::uint16_t number_high;
  std::uint8_t bytes;  ///< of message data in the cells
  CellKind kind : 7;
  bool placed : 1;  ///< the data is in the posted receive (or was WRITTEN) already; the cell has its
                    ///< length instead

  CellHeader() = default;
  CellHeader(std::uint64_t number, std::uint32_t message_bytes, CellKind cell_kind, bool is_placed)
      : number_low(static_cast<std::uint32_t>(number)),
        number_high(static_cast<std::uint16_t>(number >> 32)),
        bytes(static_cast<std::uint8_t>(message_bytes)),
        kind(cell_kind),
        placed(is_placed) {}
  bool has(std::uint64_t number) const {
    return number_low == static_cast<std::uint32_t>(number) &&
           number_high == static_cast<std::uint16_t>(number >> 32);
  }
};
static_assert(sizeof(CellHeader) == 8);
/// The number alone, which stands first.
inline constexpr std::uint32_t kCellNumberBytes = 6;

// Not std::bit_cast: the libstdc++ that the package's binaries are built with has none
// (native/portable.cmake).
inline std::uint64_t pack(const CellHeader& header) {
  std::uint64_t word;
  std::memcpy(&word, &header, sizeof word);
  return word;
}
inline CellHeader unpack(std::uint64_t word) {
  CellHeader header;
  std::memcpy(&header, &word, sizeof header);
  return header;
}

/// Data of the first cell: [key or immediate, 4 bytes, unless kind is send] [length, 4 bytes, if placed]
/// [message data]. Each further cell has its own number (never looked at) in front, so that the bytes there
/// cannot pass for one later.
struct alignas(kCacheLine) Cell {
  LongWord header;
  std::byte data[56];
};
inline constexpr std::uint32_t kFirstCellBytes = 56;
inline constexpr std::uint32_t kNextCellBytes = kCacheLine - kCellNumberBytes;
inline constexpr std::uint32_t kCellsPerMessageMax = 4;
inline constexpr std::uint32_t kInlineMax =
    kFirstCellBytes + (kCellsPerMessageMax - 1) * kNextCellBytes - sizeof(std::uint32_t);
static_assert(sizeof(Cell) == kCacheLine);

struct PostedReceive {
  LongWord addr;
  Word length;
  Word memory;
};
static_assert(sizeof(PostedReceive) == 16);

/// QpSegment::state, as the peer sees it.
enum class SharedState : std::uint32_t {
  live = 1,
  error = 2,   ///< does not answer any more
  closed = 3,  ///< has been destroyed
  fault = 4,   ///< one side broke the rules (a bad key, a bad cell): the peer goes to ERR too
};

/// QpSegment::hazard, when it is not a key: the peer copies a message into a posted receive.
inline constexpr std::uint32_t kHazardReceive = 1;

/// Followed by PostedReceive[receive_slots] and Cell[cells]. The ring never fills: a message needs a posted
/// receive, at most `receive_slots` are posted and not yet consumed, and there are kCellsPerMessageMax cells
/// for each.
///
/// From AddressBlob::lap_cells on the peer may begin a new lap, at the first cell, with any message before
/// which everything has been read (`consumed`). The owner then looks in both places, of which one has the
/// number that comes next. So a queue pair on which little is under way uses a few lines of its ring, in
/// place of all of it one after the other.
struct QpSegment {
  /// What local_address() gives. A peer that comes with anything else is not meant, or somebody changed it on
  /// the way.
  alignas(kCacheLine) AddressBlob address;
  /// Written by the owner, once; it and the next are alone in their line, which therefore stays in both
  /// caches.
  alignas(kCacheLine) Word state;
  /// Written by the owner, rarely. 1: it does not look at the ring by itself, so the peer sets the bit of
  /// this queue pair after what it publishes.
  Word announce;
  /// Written by the owner when it posts receives; the peer looks only when it knows of no further one.
  alignas(kCacheLine) Word posted;  ///< receives ever posted, modulo 2^32
  Word shortest_receive;            ///< no receive among them was shorter
  /// Written with it, and looked at for a new lap: messages that have been read, counted as `posted` is.
  Word consumed;
  /// Written by the peer: what it is copying through at this moment (a key, or kHazardReceive), 0 when
  /// nothing. As with any hazard pointer: set first, then look whether the right still stands; the owner
  /// revokes first, then looks here.
  alignas(kCacheLine) Word hazard;
  Word hazard_receive;  ///< with kHazardReceive: the receive's number, counted as `posted` is
  Word claimed;         ///< 1 once a peer has connected: a queue pair has one peer
};

inline constexpr std::uint32_t kReceiveSlotsMax = 1u << 15;
/// Where receives begin to be counted: late enough that the counters wrap in tests and not first after an
/// hour in production.
inline constexpr std::uint32_t kFirstNumber = 0u - kReceiveSlotsMax * kCellsPerMessageMax;

constexpr std::size_t receives_offset() { return sizeof(QpSegment); }
constexpr std::size_t cells_offset(std::uint32_t receive_slots) {
  const std::size_t end = receives_offset() + std::size_t{receive_slots} * sizeof(PostedReceive);
  return (end + kCacheLine - 1) / kCacheLine * kCacheLine;
}
constexpr std::uint32_t cells_for(std::uint32_t receive_slots) { return receive_slots * kCellsPerMessageMax; }
constexpr std::size_t qp_segment_bytes(std::uint32_t receive_slots) {
  return cells_offset(receive_slots) + std::size_t{cells_for(receive_slots)} * sizeof(Cell);
}

}  // namespace rdma_rpc::fabric::shm
