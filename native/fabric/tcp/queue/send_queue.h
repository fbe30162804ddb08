// The send queue of a queue pair: what has been posted, how far each request has come, and which completion
// is due next. Knows no socket. Used by the queue pair, on the device's thread.
//
// Of its indices (software/send_indices.h), those from `retired` to `started` are wholly in frames, or a
// local request that has been carried out, and wait for the peer or for those before them.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/software/key_table.h"
#include "fabric/software/requests.h"
#include "fabric/software/send_indices.h"
#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class Device;

using software::is_local;
using software::is_send;
using software::is_write;

inline constexpr std::uint32_t kMaxSge = 8;
inline constexpr std::uint32_t kInlineMax = kMaxSge * sizeof(Sge);

struct SendSlot {
  SendSlot() {}  // nothing is set before post() does
  std::uint64_t wr_id;
  std::uint64_t remote_addr;
  std::uint32_t key;    ///< rdma_*: of the peer; local_inv: own
  std::uint32_t extra;  ///< the immediate, or the key for the peer to invalidate
  std::uint32_t bytes;
  std::uint32_t moved;   ///< send, write: bytes in frames; read: bytes that have come
  std::uint32_t number;  ///< on the wire, once begun
  Opcode opcode;
  WcStatus status;  ///< how it will fail, when that is known before its turn
  bool signaled, fence, inlined, begun;
  bool asked;      ///< for an ack of those before it, since it is to fail behind them
  bool vanished;   ///< READ: the memory is not there any more
  bool abandoned;  ///< READ: its bytes are thrown away when they come
  std::uint8_t sge_count;
  union {
    std::array<Sge, kMaxSge> sges;
    std::array<std::byte, kInlineMax> data;
    software::BindRequest bind;
  };

  /// [offset, offset + bytes) of its local memory, as pieces in `to`, which has room for kMaxSge. How many.
  std::size_t pieces(std::uint32_t offset, std::uint32_t bytes, iovec* to);
};

/// What a queue pair at rest costs is its two queues.
static_assert(sizeof(SendSlot) <= 192);

class SendQueue {
 public:
  /// `first_number`: what the first request is called on the wire. A test begins shortly before 2^32.
  SendQueue(Device& device, std::uint32_t limit, std::uint32_t first_number = 0);

  bool is_full() const { return at_.is_full(); }
  /// Copies what is needed of the request; a malformed one gets the status with which it will fail.
  void post(const SendWr& wr);
  void freed(std::uint64_t end) { at_.freed = end; }

  bool all_started() const { return at_.all_started(); }
  SendSlot& next() { return slot(at_.started); }
  /// Whether next() has to wait for READs before it.
  bool must_wait();
  /// next() becomes a request of the wire: gives it its number.
  void begin();
  /// So many bytes more of next() are in frames.
  void moved(std::uint32_t bytes);
  /// Of WRITEs, those that are not in frames.
  std::uint64_t unsent_write_bytes() const { return unsent_write_bytes_; }
  /// All of next() is in frames now, or carried out.
  void started();

  /// Gives a number to a request that no slot has.
  std::uint32_t begin_own() { return next_number_++; }
  /// Whether the peer has not said yet that it has carried out all that is out.
  bool is_unacked() const { return acked_ != next_number_; }

  /// The peer has carried out all requests before this number. False: it cannot have.
  bool acked(std::uint32_t number);
  /// The oldest READ that waits for bytes; null: none does.
  SendSlot* reading();
  /// All of its bytes have come.
  void read_done();
  /// READs into that memory which are not over write there no more.
  void abandon_reads(std::uint64_t addr, std::uint64_t bytes);
  /// The peer refuses this request. False: it cannot.
  bool refused(std::uint32_t number, WcStatus status);
  /// The oldest request that the peer has not carried out fails; it will not be. False: there is none.
  bool fail_oldest(WcStatus status);

  /// Moves on to the next request that is over, and returns it; null when there is none. With a status other
  /// than success it is the last one.
  SendSlot* retire();
  /// Of the request that retire() has returned last.
  std::uint64_t retired() const { return at_.retired; }
  /// In ERR: the next one of all that are left; null when there is none.
  SendSlot* flush();

 private:
  SendSlot& slot(std::uint64_t index) { return slots_[at_.slot(index)]; }
  WcStatus check(const SendWr& wr, std::uint64_t bytes) const;
  bool is_over(const SendSlot& slot) const;
  bool is_behind(std::uint32_t number) const { return static_cast<std::int32_t>(acked_ - number) > 0; }

  Device& device_;
  software::SendIndices at_;
  std::unique_ptr<SendSlot[]> slots_;
  std::uint64_t unsent_write_bytes_ = 0;
  std::uint32_t next_number_, acked_;             ///< behind 2^32 - 1 comes 0
  std::array<std::uint64_t, kReadsMax> reads_{};  ///< the slots of READs that wait for bytes, oldest first
  std::uint32_t reads_head_ = 0, reads_tail_ = 0;
};

}  // namespace rdma_rpc::fabric::tcp
