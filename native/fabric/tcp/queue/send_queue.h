// Implements the send queue of a queue pair: posted requests, the progress of each, and which completion is
// due next. The send queue does not use the socket. This file is used by the queue pair, on the device's
// thread.
//
// Meaning of the queue's indices (software/send_indices.h). Requests from `retired` to `started` are
// completely in frames, or are executed local requests. These requests wait for the peer or for earlier
// requests.
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

using software::brings_bytes;
using software::is_atomic;
using software::is_local;
using software::is_send;
using software::is_write;

inline constexpr std::uint32_t kMaxSge = 8;
inline constexpr std::uint32_t kInlineMax = kMaxSge * sizeof(Sge);

struct SendSlot {
  SendSlot() {}  // post() sets the fields; initialising them here would cost time
  std::uint64_t wr_id;
  std::uint64_t remote_addr;
  std::uint32_t key;    ///< rdma_*: key of the peer; local_inv: own key
  std::uint32_t extra;  ///< the immediate, or the key that the peer must invalidate
  std::uint32_t bytes;
  std::uint32_t moved;   ///< send, write: number of bytes in frames; read: number of bytes received
  std::uint32_t number;  ///< number on the wire, after begin()
  Opcode opcode;
  WcStatus status;  ///< how the request will fail, if it is already known that it fails
  bool signaled, fence, inlined, begun;
  /// The request may have to wait for earlier READs, or until this side knows the features of the peer; see
  /// must_wait().
  bool may_wait;
  bool asked;  ///< an ack for earlier requests has been requested, because this request must fail behind them
  bool memory_gone;  ///< READ: the memory no longer exists
  bool abandoned;    ///< READ: its bytes are discarded when they arrive
  std::uint8_t sge_count;
  union {
    std::array<Sge, kMaxSge> sges;
    std::array<std::byte, kInlineMax> data;
    software::BindRequest bind;
  };

  /// These functions access the operands of an atomic. An atomic has a single gather entry, so its operands
  /// are stored in place of a second entry.
  AtomicOperands operands() const;
  void set_operands(const AtomicOperands& operands);
  /// Writes the segments of the bytes [offset, offset + bytes) of its local memory to `to`, which has room
  /// for kMaxSge segments. Returns their number.
  std::size_t segments(std::uint32_t offset, std::uint32_t bytes, iovec* to);
};

/// This queue and the receive queue determine the memory cost of an idle queue pair.
static_assert(sizeof(SendSlot) <= 192);

class SendQueue {
 public:
  /// `first_number` is the number of the first request on the wire. Tests begin shortly before 2^32.
  SendQueue(Device& device, std::uint32_t limit, std::uint32_t first_number = 0);

  bool is_full() const { return at_.is_full(); }
  /// Copies the request. A malformed request gets the status with which it will fail.
  void post(const SendWr& wr);
  void freed(std::uint64_t end) { at_.freed = end; }

  bool all_started() const { return at_.all_started(); }
  SendSlot& next() { return slot(at_.started); }
  /// Returns whether next() has to wait for earlier READs, or for the peer's answer about its features.
  bool must_wait();
  /// Returns whether next() needs a feature that some peers lack, and this peer has not been asked for its
  /// features.
  bool needs_features() { return needed_features(next().opcode) != 0 && !features_asked_; }
  /// Returns whether the peer has answered that it lacks a feature that next() needs.
  bool lacks_features();
  /// Records that the peer is being asked for its features. Returns the number with which the question is
  /// sent.
  std::uint32_t begin_features_question();
  /// Records the peer's answer. Returns false when the peer has not been asked, or has answered already.
  bool know_features(std::uint32_t bits) {
    features_ = bits;
    return features_asked_ && !features_known();
  }
  /// Gives next() its number on the wire.
  void begin();
  /// Records that this number of further bytes of next() has been put into frames.
  void moved(std::uint32_t bytes);
  /// Returns the number of bytes of WRITEs that are not in frames yet.
  std::uint64_t unsent_write_bytes() const { return unsent_write_bytes_; }
  /// Marks next() as started: all its bytes are in frames, or it has been executed.
  void started();

  /// Returns a number for a request without a slot.
  std::uint32_t begin_own() { return next_number_++; }
  /// Returns whether sent requests exist that the peer has not acknowledged.
  bool is_unacked() const { return acked_ != next_number_; }

  /// Records that the peer has executed all requests before `number`. Returns false when the peer cannot have
  /// executed them (a protocol error).
  bool acked(std::uint32_t number);
  /// Returns the oldest READ that waits for bytes, or null.
  SendSlot* reading();
  /// Completes the oldest READ, all of whose bytes have arrived.
  void read_done();
  /// Makes outstanding READs into [addr, addr + bytes) discard their bytes.
  void abandon_reads(std::uint64_t addr, std::uint64_t bytes);
  /// Records that the peer refused request `number`. Returns false when no request with this number can still
  /// be refused (a protocol error).
  bool refused(std::uint32_t number, WcStatus status);
  /// Fails the oldest request that the peer has not executed. Returns false when no such request exists.
  bool fail_oldest(WcStatus status);

  /// Advances to the next finished request and returns it, or null when none is finished. A failed request is
  /// the last request that this function returns.
  SendSlot* retire();
  /// Returns the index behind the request that retire() returned last.
  std::uint64_t retired() const { return at_.retired; }
  /// Returns the next of the remaining requests in ERR, or null.
  SendSlot* flush();

 private:
  SendSlot& slot(std::uint64_t index) { return slots_[at_.slot(index)]; }
  static std::uint32_t needed_features(Opcode opcode);
  bool features_known() const { return features_asked_ && is_behind(features_number_); }
  WcStatus check(const SendWr& wr, std::uint64_t bytes) const;
  bool is_over(const SendSlot& slot) const;
  bool is_behind(std::uint32_t number) const { return static_cast<std::int32_t>(acked_ - number) > 0; }

  Device& device_;
  software::SendIndices at_;
  std::unique_ptr<SendSlot[]> slots_;
  std::uint64_t unsent_write_bytes_ = 0;
  std::uint32_t next_number_, acked_;             ///< these wrap: 0 follows 2^32 - 1
  std::array<std::uint64_t, kReadsMax> reads_{};  ///< slots of READs that wait for bytes, oldest first
  std::uint32_t reads_head_ = 0, reads_tail_ = 0;
  std::uint32_t features_ = 0;         ///< features of the peer, after it has answered
  std::uint32_t features_number_ = 0;  ///< number of the question for the features
  bool features_asked_ = false;
};

}  // namespace rdma_rpc::fabric::tcp
