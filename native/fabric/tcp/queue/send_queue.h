// The send queue of a queue pair: what has been posted, how far each request has come, and which completion
// is due next. Knows no socket. Used by the queue pair, on the device's thread.
//
//   freed ≤ retired ≤ started ≤ posted, by ever-growing index
//   [freed, retired)    reported, or carried out without a signal; the place comes back when polled
//   [retired, started)  wholly in frames (a local request: carried out); waits for the peer, or for those
//   before it [started, posted)   the first one may be in frames in part
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/tcp/wire.h"

namespace rdma_rpc::fabric::tcp {

class Device;

constexpr bool is_local(Opcode opcode) { return opcode == Opcode::bind_mw || opcode == Opcode::local_inv; }
constexpr bool is_send(Opcode opcode) { return opcode == Opcode::send || opcode == Opcode::send_with_inv; }
constexpr bool is_write(Opcode opcode) {
  return opcode == Opcode::rdma_write || opcode == Opcode::rdma_write_with_imm;
}

inline constexpr std::uint32_t kMaxSge = 8;
inline constexpr std::uint32_t kInlineMax = kMaxSge * sizeof(Sge);

struct BindRequest {
  std::uint32_t key, region_key;  ///< keys, since the objects may be gone when its turn comes
  std::uint32_t access;
  std::uint64_t addr, length;
};

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
    BindRequest bind;
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

  bool is_full() const { return posted_ - freed_ == limit_; }
  /// Copies what is needed of the request; a malformed one gets the status with which it will fail.
  void post(const SendWr& wr);
  void freed(std::uint64_t end) { freed_ = end; }

  bool all_started() const { return started_ == posted_; }
  SendSlot& next() { return at(started_); }
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
  std::uint64_t retired() const { return retired_; }
  /// In ERR: the next one of all that are left; null when there is none.
  SendSlot* flush();

 private:
  SendSlot& at(std::uint64_t index) { return slots_[index & mask_]; }
  WcStatus check(const SendWr& wr, std::uint64_t bytes) const;
  bool is_over(const SendSlot& slot) const;
  bool is_behind(std::uint32_t number) const { return static_cast<std::int32_t>(acked_ - number) > 0; }

  Device& device_;
  const std::uint32_t limit_;
  const std::uint64_t mask_;
  std::unique_ptr<SendSlot[]> slots_;
  std::uint64_t freed_ = 0, retired_ = 0, started_ = 0, posted_ = 0;
  std::uint64_t unsent_write_bytes_ = 0;
  std::uint32_t next_number_, acked_;             ///< behind 2^32 - 1 comes 0
  std::array<std::uint64_t, kReadsMax> reads_{};  ///< the slots of READs that wait for bytes, oldest first
  std::uint32_t reads_head_ = 0, reads_tail_ = 0;
};

}  // namespace rdma_rpc::fabric::tcp
