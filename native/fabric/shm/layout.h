// Defines the layout of shared memory: the one definition of the bytes that two processes exchange. This file
// is included by everything in this folder; it contains no code of its own that runs on a thread.
//
// Each of the three kinds of segment is a memfd:
//  - DeviceSegment, one per device, which peers can only read (F_SEAL_FUTURE_WRITE): tables of keys and
//    memories, and one cache line per completion queue that says whether its thread sleeps and where it ran.
//  - Announcements, one per device except on shm-fd: a bit per queue pair, which the peer of the queue pair
//    sets.
//  - QpSegment, one per queue pair, which the receiving side owns and its one peer writes: a ring of 64-byte
//    cells that contains messages, the list of posted receives, and the peer's in-use marker.
//
// Two processes can have different builds of this package. Therefore each segment begins with a magic number
// and kShmVersion, which have the same offsets in every version. A reader of another version reads nothing
// else. The static_assert at the end of this file fails when a size or an offset has changed.
//
// The owner of a segment keeps private copies of the values that it wrote, and never reads them back from the
// segment. Values that the peer writes are read once and checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "fabric/connect_message.h"
#include "fabric/shm/shared_words.h"
#include "fabric/versions.h"

namespace rdma_rpc::fabric::shm {

inline constexpr std::uint32_t kMagic = 0x6d687372;  // "rshm"
inline constexpr std::size_t kCacheLine = 64;

using Word = SharedWord<std::uint32_t>;
using LongWord = SharedWord<std::uint64_t>;
static_assert(Word::is_always_lock_free && LongWord::is_always_lock_free,
              "shared words must be address-free");

struct Header {
  std::uint32_t magic;
  std::uint32_t version;
  Token token;  ///< random; the address blob contains the same token
  /// The value of kShape at the writer; connect/compatibility.h reads it.
  std::uint32_t shape;
};

// ---- DeviceSegment ----

inline constexpr std::uint32_t kPollersMax = 16;
inline constexpr std::uint32_t kMemoriesMax = 1024;
/// A key consists of its index in the table (high bits) and a generation, so that a stale key finds an entry
/// with another generation.
inline constexpr std::uint32_t kKeyGenerationBits = 18;
inline constexpr std::uint32_t kKeysMax = 1u << (32 - kKeyGenerationBits);
/// Value of TableKey::memory and PostedReceive::memory for a range outside of alloc_memory() memory. Such a
/// range is reached by its address, through the kernel.
inline constexpr std::uint32_t kNoMemory = ~0u;

/// A bit of Poller::sleeping that asks peers to ring only for solicited messages and failures. Builds that do
/// not know this bit always ring.
inline constexpr std::uint32_t kSolicitedOnly = 1;

/// The state of a completion queue's thread.
struct alignas(kCacheLine) Poller {
  /// The value is 0 while the thread is awake. Otherwise it is the even number of this sleep, possibly
  /// combined with kSolicitedOnly. A peer that has rung for this number need not ring again.
  Word sleeping;
  Word cpu;  ///< the CPU on which the thread last ran
};

/// Memory of alloc_memory() that peers may map.
struct alignas(kCacheLine) TableMemory {
  LongWord serial;  ///< never reused; 0 when the entry is free
  LongWord addr;
  LongWord bytes;
  Word fd;
};

/// A region or window with remote rights.
struct alignas(kCacheLine) TableKey {
  Word key;     ///< 0 when the entry is free; written last when granted, first when revoked
  Word qp_num;  ///< the owner's queue pair that may use the key; 0 for any
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

/// Limit of the number of queue pairs on a device: 14 bits, as for the sessions of a context.
inline constexpr std::uint32_t kQueuePairsMax = 1u << 14;
inline constexpr std::uint32_t kBitsPerWord = 64;
inline constexpr std::uint32_t kAnnouncementWords = kQueuePairsMax / kBitsPerWord;
inline constexpr std::uint32_t kAnnouncementGroups = kAnnouncementWords / kBitsPerWord;

struct Announcements {
  alignas(kCacheLine) Header header;
  /// A bit for each word of `queue_pairs` that has a bit set.
  alignas(kCacheLine) LongWord groups[kAnnouncementGroups];
  /// A bit for each queue pair, at index AddressBlob::index.
  alignas(kCacheLine) LongWord queue_pairs[kAnnouncementWords];
};

// ---- The address blob of a queue pair ----

/// The blob has a fixed size and host byte order (both sides are on this host). connect() checks every field.
/// On the active side of shm-fd, the path of the socket to connect to follows it (shm_address_via()).
struct AddressBlob {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t pid;
  std::uint32_t qp_num;
  std::uint64_t start_ticks;  ///< start time of the process, in case its pid is reused
  Token device_token;
  Token qp_token;
  /// Address of device_token in the process's own memory, on which process_vm_readv is tried.
  std::uint64_t token_addr;
  std::uint32_t device_fd;
  std::uint32_t qp_fd;
  std::uint32_t pipe_fd;
  std::uint32_t pipe_serial;  ///< number of that pipe among the device's pipes
  std::uint32_t poller;       ///< index in DeviceSegment::pollers
  std::uint32_t announcements_fd;
  std::uint32_t index;          ///< index of the queue pair's bit in Announcements::queue_pairs
  std::uint32_t receive_slots;  ///< a power of two
  std::uint32_t epoch_cells;    ///< see QpSegment; from 1 to the number of cells in the ring
  /// The value is 1 on shm-fd: the fields about the process and its descriptors are then 0, and the
  /// descriptors arrive over a control connection (control_connection.h).
  std::uint32_t by_descriptors;
};
static_assert(sizeof(AddressBlob) <= 512);

// ---- QpSegment ----

/// send_with_imm may be sent only to owners with feature_send_with_imm.
enum class CellKind : std::uint8_t { send = 1, send_with_inv = 2, write_with_imm = 3, send_with_imm = 4 };

/// Header of a message's first cell, which is stored last. Numbers start at 1 and have 48 bits, so that the
/// old content of a cell is never mistaken for the next message. At 10 million cells a second, they last 10
/// months.
struct CellHeader {
  std::uint32_t number_low;
  std::uint16_t number_high;
  std::uint8_t bytes;  ///< number of bytes of message data in the cells
  CellKind kind : 7;
  /// The data is already in the posted receive (or was sent by WRITE), so the cell contains its length
  /// instead.
  bool placed : 1;

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
/// Size of the number, which is the first field of the header.
inline constexpr std::uint32_t kCellNumberBytes = 6;

// This does not use std::bit_cast, which is missing in the libstdc++ that the package's binaries are built
// with (native/portable.cmake).
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
/// [message data]. Each further cell begins with its own number. The number is never read. The fence only
/// makes sure that the first bytes of the cell cannot later be mistaken for the number of a message.
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

/// Values of QpSegment::state, for the peer.
enum class SharedState : std::uint32_t {
  live = 1,
  error = 2,   ///< the queue pair no longer responds
  closed = 3,  ///< the queue pair has been destroyed
  fault = 4,   ///< one side broke the rules (by an invalid key or cell), so the peer goes to ERR, too
};

/// Bits of QpSegment::features. Each bit stands for a value. The value may be written only to owners that
/// announce the bit, or is written only by such owners.
enum SharedFeature : std::uint32_t {
  feature_send_with_imm = 1u << 0,
  /// The lowest bit of Poller::sleeping is kSolicitedOnly. Older builds count their sleeps one by one, so
  /// this bit of theirs has no meaning.
  feature_solicited_only = 1u << 1,
};
inline constexpr std::uint32_t kSharedFeatures = feature_send_with_imm | feature_solicited_only;

/// A value of QpSegment::in_use that is no key: the peer is copying a message into a posted receive.
inline constexpr std::uint32_t kInUseReceive = 1;

/// The structure is followed by PostedReceive[receive_slots] and Cell[cells]. The ring never fills up. Each
/// message needs a posted receive, the number of posted receives that are not yet consumed is at most
/// `receive_slots`, and the ring has kCellsPerMessageMax cells for each of them.
///
/// A ring epoch is one pass over the ring. When AddressBlob::epoch_cells cells of the ring are used, the peer
/// may begin a new epoch at the first cell, provided that the owner has read all earlier messages
/// (`consumed`). The owner then looks at both the next cell and the first cell. Only one of them has the
/// expected number. Therefore a queue pair with little traffic reuses a few lines of its ring instead of
/// using all lines in turn.
struct QpSegment {
  /// The blob that local_address() returns. If a peer connects with a different blob, either the peer expects
  /// another queue pair, or the blob was changed on the way.
  alignas(kCacheLine) AddressBlob address;
  /// The owner writes this field once. The field and the next have a cache line of their own, which therefore
  /// stays in both caches.
  alignas(kCacheLine) Word state;
  /// The owner writes this field rarely. When the value is 1, the owner does not look at the ring by itself,
  /// so the peer sets the bit of this queue pair after it has published a message.
  Word announce;
  /// The features that the owner supports beyond kShmVersion. The owner writes the features before it sends
  /// its address. Older builds have padding with the value 0 here, so this field is not part of the shape.
  Word features;
  /// The owner writes these words when it posts receives. The peer reads them only after it has used all
  /// receives that it knows of.
  alignas(kCacheLine) Word posted;  ///< total number of receives posted, modulo 2^32
  Word shortest_receive;            ///< length of the shortest posted receive
  /// The number of messages that have been read, counted like `posted` and written together with it. The peer
  /// reads this number before it begins a new epoch.
  Word consumed;
  /// In-use marker, which the peer writes: the key (or kInUseReceive) through which the peer is copying at
  /// this moment; 0 when the peer is not copying. The marker works like a hazard pointer. The peer first sets
  /// the marker and then checks that it still has the right; the owner first revokes the right and then reads
  /// the marker.
  alignas(kCacheLine) Word in_use;
  Word in_use_receive;  ///< for kInUseReceive: the number of the receive, counted like `posted`
  Word claimed;         ///< 1 after a peer has connected, because a queue pair has only one peer
};

inline constexpr std::uint32_t kReceiveSlotsMax = 1u << 15;
/// First number of a receive. The start is so high that the counters also wrap in tests. If they started from
/// 0, they would wrap only after an hour in production.
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

// ---- The shape ----

/// Combines all sizes and offsets above, and the limits that positions depend on, into one number (FNV-1a).
constexpr std::uint32_t shape_of(std::initializer_list<std::size_t> numbers) {
  std::uint32_t sum = 0x811c9dc5;
  for (const std::size_t number : numbers) sum = (sum ^ static_cast<std::uint32_t>(number)) * 0x01000193;
  return sum;
}
inline constexpr std::uint32_t kShape = shape_of({
    sizeof(Poller),
    offsetof(Poller, sleeping),
    offsetof(Poller, cpu),
    sizeof(TableMemory),
    offsetof(TableMemory, serial),
    offsetof(TableMemory, addr),
    offsetof(TableMemory, bytes),
    offsetof(TableMemory, fd),
    sizeof(TableKey),
    offsetof(TableKey, key),
    offsetof(TableKey, qp_num),
    offsetof(TableKey, access),
    offsetof(TableKey, memory),
    offsetof(TableKey, addr),
    offsetof(TableKey, length),
    sizeof(DeviceSegment),
    offsetof(DeviceSegment, pollers),
    offsetof(DeviceSegment, memories),
    offsetof(DeviceSegment, keys),
    kPollersMax,
    kMemoriesMax,
    kKeyGenerationBits,
    sizeof(Announcements),
    offsetof(Announcements, groups),
    offsetof(Announcements, queue_pairs),
    kBitsPerWord,
    kQueuePairsMax,
    sizeof(AddressBlob),
    offsetof(AddressBlob, pid),
    offsetof(AddressBlob, qp_num),
    offsetof(AddressBlob, start_ticks),
    offsetof(AddressBlob, device_token),
    offsetof(AddressBlob, qp_token),
    offsetof(AddressBlob, token_addr),
    offsetof(AddressBlob, device_fd),
    offsetof(AddressBlob, qp_fd),
    offsetof(AddressBlob, pipe_fd),
    offsetof(AddressBlob, pipe_serial),
    offsetof(AddressBlob, poller),
    offsetof(AddressBlob, announcements_fd),
    offsetof(AddressBlob, index),
    offsetof(AddressBlob, receive_slots),
    offsetof(AddressBlob, epoch_cells),
    offsetof(AddressBlob, by_descriptors),
    sizeof(Cell),
    offsetof(Cell, data),
    sizeof(CellHeader),
    offsetof(CellHeader, bytes),
    kCellNumberBytes,
    kFirstCellBytes,
    kNextCellBytes,
    kCellsPerMessageMax,
    sizeof(PostedReceive),
    offsetof(PostedReceive, length),
    offsetof(PostedReceive, memory),
    sizeof(QpSegment),
    offsetof(QpSegment, state),
    offsetof(QpSegment, announce),
    offsetof(QpSegment, posted),
    offsetof(QpSegment, shortest_receive),
    offsetof(QpSegment, consumed),
    offsetof(QpSegment, in_use),
    offsetof(QpSegment, in_use_receive),
    offsetof(QpSegment, claimed),
    kReceiveSlotsMax,
    kFirstNumber,
});
#ifndef RDMA_RPC_SHARED_WORDS
static_assert(kShape == 0x1a632de5,
              "the layout has changed: give kShmVersion its next value, and put kShape here");
#endif
// These offsets are the same in every version, because readers of other versions use them.
static_assert(offsetof(Header, magic) == 0 && offsetof(Header, version) == 4 && offsetof(Header, token) == 8);
static_assert(offsetof(AddressBlob, magic) == 0 && offsetof(AddressBlob, version) == 4);

}  // namespace rdma_rpc::fabric::shm
