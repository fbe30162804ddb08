// Declares work requests, which are posted to a queue pair, and their completions. All names are those of
// libibverbs. This file is part of fabric.h and is used on the same thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/address_handle.h"
#include "fabric/memory.h"

namespace rdma_rpc::fabric {

/// Completion status, with the names of `enum ibv_wc_status`.
enum class WcStatus : std::uint8_t {
  success,
  loc_len_err,    ///< the message is longer than its receive, or the scatter list is too short
  loc_qp_op_err,  ///< the queue pair cannot do this operation in its state
  loc_prot_err,   ///< a local SGE is outside its memory region, or has a wrong lkey
  wr_flush_err,   ///< the queue pair went to ERR before the request was executed
  mw_bind_err,    ///< the window may not be bound as requested
  /// The peer could not accept the message (it is too long for its receive, or names an unknown key to
  /// invalidate).
  rem_inv_req_err,
  rem_access_err,     ///< the peer refused the key, right, range or protection domain
  retry_exc_err,      ///< the peer does not answer
  rnr_retry_exc_err,  ///< the peer had no receive posted
  rem_abort_err,      ///< the peer closed the connection
  general_err,
};
const char* to_string(WcStatus status);

enum class Opcode : std::uint8_t {
  send,
  send_with_imm,  ///< only if Capabilities::send_immediate
  /// Like send, and also invalidates the peer's window `SendWr::invalidate_rkey` when the receive completes.
  send_with_inv,
  rdma_write,
  rdma_write_with_imm,  ///< only if Capabilities::immediate
  rdma_read,
  /// Requires Capabilities::atomics. Writes SendWr::atomic.swap to the 8 bytes at remote_addr if they are
  /// equal to SendWr::atomic.compare_add. The request has a single entry of 8 bytes, which receives the
  /// previous value, as for atomic_fetch_and_add.
  atomic_cmp_and_swp,
  atomic_fetch_and_add,  ///< adds SendWr::atomic.compare_add, modulo 2^64
  bind_mw,               ///< binds SendWr::bind.window; a later SEND on this queue pair may carry its key
  local_inv,             ///< invalidates SendWr::invalidate_rkey, a window bound on this queue pair
  recv,                  ///< in completions only
  recv_rdma_with_imm,    ///< in completions only
};
inline constexpr std::size_t kOpcodes = 12;
/// A gather or scatter entry. `lkey` is the local key of the region that contains [addr, addr + length).
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

struct SendWr {
  std::uint64_t wr_id = 0;
  Opcode opcode = Opcode::send;
  bool signaled = false;
  bool inline_data = false;  ///< total length ≤ max_inline; lkeys are ignored
  bool fence = false;        ///< waits for earlier READs and atomics of this queue pair
  bool solicited = false;    ///< send*, rdma_write_with_imm: wakes a peer that called arm_solicited()
  std::span<const Sge> sges;
  std::uint64_t remote_addr = 0;      ///< rdma_*, atomic_* (for which it must be a multiple of 8)
  std::uint32_t rkey = 0;             ///< rdma_*, atomic_*
  std::uint32_t imm = 0;              ///< send_with_imm, rdma_write_with_imm
  std::uint32_t invalidate_rkey = 0;  ///< send_with_inv, local_inv
  struct Bind {                       ///< for bind_mw: the window has its new rkey when post_send returns
    MemoryWindow* window = nullptr;
    const MemoryRegion* region = nullptr;  ///< must be registered with access_mw_bind
    std::uint64_t addr = 0;
    std::uint64_t length = 0;
    std::uint32_t access = 0;  ///< any of access_remote_read, access_remote_write, access_remote_atomic
  };
  struct Atomic {  ///< for atomic_*, in the byte order of this host
    std::uint64_t compare_add, swap;
  };
  struct Datagram {           ///< for send and send_with_imm on a UD queue pair
    const AddressHandle* ah;  ///< must live until the request has completed
    std::uint32_t remote_qpn;
    /// Must be equal to the receiver's QpOptions::qkey. When the top bit is set, the sender's own Q_Key is
    /// sent in its place.
    std::uint32_t remote_qkey;
  };
  union {  ///< one of these, depending on the opcode and the type of the queue pair
    Bind bind = {};
    Atomic atomic;
    Datagram ud;
  };
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  Sge sge;  ///< on a UD queue pair, the message begins kGrhBytes after the start of the entry
};

/// A work completion. `opcode`, `bytes`, `imm`, `invalidated_rkey`, `src_qp` and `has_grh` are valid only
/// when the status is success. As in libibverbs, a completion does not say whether a message was solicited.
struct Wc {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::success;
  Opcode opcode = Opcode::send;
  bool has_imm = false;  ///< recv of a send_with_imm, recv_rdma_with_imm
  bool has_grh = false;  ///< UD recv: the first kGrhBytes of the receive contain a header
  std::uint32_t qp_num = 0;
  std::uint32_t tag = 0;  ///< QpOptions::tag, for a completion of a shared receive
  /// Number of bytes received, read or written. For the recv of a datagram, the number includes kGrhBytes.
  std::uint32_t bytes = 0;
  std::uint32_t imm = 0;
  std::uint32_t src_qp = 0;            ///< UD recv: the sender's queue pair
  std::uint32_t invalidated_rkey = 0;  ///< for the recv of a send_with_inv; otherwise 0
  /// rdma_read: the peer's memory no longer exists or was revoked, so the bytes that were read are
  /// meaningless. The queue pair stays usable. Only software fabrics can report this; on a device, registered
  /// memory is pinned and cannot disappear.
  bool memory_gone = false;
  /// For a UD recv on InfiniBand, the sender's port and the service level, for an answer. The values are 0 on
  /// other networks.
  std::uint8_t service_level = 0;
  std::uint16_t slid = 0;
  /// For a recv with QpOptions::short_apart, the position of the message until the next poll(). The pointer
  /// is null when the message lies in the buffer of its receive.
  const std::byte* apart = nullptr;
  /// For a flushed recv with QpOptions::flush_together, the number of receives for which this completion
  /// stands. wr_id is that of the oldest receive.
  std::uint32_t receives = 1;
  /// For a failed request, the device's own error code, ibv_wc::vendor_err. The vendor's documents explain
  /// its value. The value is 0 when the device has no such code, as on every software fabric.
  std::uint32_t vendor_err = 0;
};

}  // namespace rdma_rpc::fabric
