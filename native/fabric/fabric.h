// The RDMA operations that a session needs, named and behaving as in libibverbs: devices, memory regions,
// memory windows, queue pairs and completion queues. Shared receive queues are in receive_queue.h. Each
// folder beside this file is one implementation ("a fabric"). Called by native/memory (registration) and
// native/session (everything else), on one thread per Device: the thread that runs the context's event loop.
// A fabric knows nothing of calls; a session knows no fabric by name and asks `Capabilities` instead.
//
// Rules that every fabric keeps (the suite in native/test/fabric checks them on each):
//  - RC semantics: SENDs arrive complete, once and in order, each in the oldest posted receive of the peer.
//    A SEND that finds no posted receive ends with rnr_retry_exc_err at the sender (unless options make it
//    wait) and moves the queue pair to ERR.
//  - A buffer belongs to the fabric from post_* until its completion has been polled; an unsignaled work
//    request is complete once a later signaled one of the same send queue has been polled. An inline send
//    is copied before post_send returns.
//  - Error completions are always delivered, signaled or not. After the first one the queue pair is in ERR,
//    and every outstanding work request, and each posted later, completes with wr_flush_err.
//  - Keys, protection domain, rights and range are checked for each remote access. A violation gives
//    rem_access_err at the initiator, touches no byte, and moves both queue pairs to ERR.
//  - A key is dead once its LOCAL_INV has completed, or a SEND_WITH_INV naming it has been polled, or the
//    queue pair of its window is in ERR and its flush has been polled. From then on no access through that
//    key can read or write a byte, whatever the peer does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/memory.h"

namespace rdma_rpc::fabric {

/// Completion status, with the names of `enum ibv_wc_status`.
enum class WcStatus : std::uint8_t {
  success,
  loc_len_err,    ///< the message is longer than its receive, or the scatter list is too short
  loc_qp_op_err,  ///< the queue pair cannot do this operation in its state
  loc_prot_err,   ///< a local SGE is outside its memory region, or has a wrong lkey
  wr_flush_err,   ///< the queue pair went to ERR before the request was carried out
  mw_bind_err,    ///< the window may not be bound as requested
  /// the peer could not accept the message (too long for its receive, unknown key to invalidate)
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
  /// as send, and invalidates the peer's window `SendWr::invalidate_rkey` when the receive completes
  send_with_inv,
  rdma_write,
  rdma_write_with_imm,  ///< only if Capabilities::immediate
  rdma_read,
  bind_mw,             ///< binds SendWr::bind.window; a later SEND on this queue pair may carry its key
  local_inv,           ///< invalidates SendWr::invalidate_rkey, a window bound on this queue pair
  recv,                ///< in completions only
  recv_rdma_with_imm,  ///< in completions only
};

enum class QpState : std::uint8_t { reset, init, rtr, rts, err };
const char* to_string(QpState state);

/// What a device can do. Figures called `probed` are measured by trying, never taken from a table of device
/// names.
struct Capabilities {
  std::string name;  ///< "shm", "sim" or a device such as "mlx5_0"; for display only, never for decisions
  std::uint32_t port = 0;            ///< port of the device, 0 where devices have no ports; for display only
  std::string path;                  ///< how its queue pairs are reached; for display only
  std::uint32_t max_inline = 0;      ///< bytes; a longer send cannot carry the inline flag
  std::uint32_t max_sge = 1;         ///< gather entries of a send or write
  std::uint32_t max_sge_read = 1;    ///< scatter entries of a read
  std::uint32_t max_qp_wr = 0;       ///< the deepest send or receive queue
  std::uint32_t max_srq_wr = 0;      ///< the deepest shared receive queue; 0 when the device has none
  std::uint32_t max_rd_atomic = 16;  ///< outstanding READs per queue pair that make progress at once
  /// limit of simultaneous alloc_memory() blocks; 0 when only the system limits them
  std::uint32_t max_memories = 0;
  std::uint64_t max_msg_bytes = 0;            ///< limit of one SEND, READ or WRITE
  bool immediate = false;                     ///< rdma_write_with_imm
  bool windows = false;                       ///< type-2 memory windows, local_inv and send_with_inv
  bool read_sink_needs_remote_write = false;  ///< iWARP
  bool active_side_sends_first = false;       ///< iWARP (MPA)
  bool pins_memory = false;                   ///< registered memory counts against RLIMIT_MEMLOCK
  /// memory that does not come from alloc_memory() may be exposed to the peer too
  bool exposes_any_memory = false;
  bool on_demand = false;  ///< access_on_demand for RC SEND, READ and WRITE (explicit ODP)
  bool dmabuf = false;     ///< reg_dmabuf_mr()
  /// The thread that posts a READ or WRITE copies its bytes inside post_send(), and does nothing else until
  /// the copy is complete.
  bool copies_when_posted = false;
  /// The CPU of this process reads the bytes of a send some event-loop iterations after the post, and nothing
  /// is pinned. Memory that its owner can take away meanwhile (Presence) must therefore be copied to memory
  /// that stays. QueuePair::revoke() and abandon_reads() work on such fabrics.
  bool reads_memory_late = false;
  /// A request of up to this many bytes in application memory is cheaper to copy to memory of alloc_memory()
  /// than to have the peer READ it in place. 0 when copying is never cheaper.
  std::uint32_t copied_request_bytes = 0;
  /// A message of at most this many bytes is cheaper as several SENDs, each copied twice, than as a READ or
  /// WRITE of memory exposed for it. 0 when that is never cheaper, or has not been measured.
  std::uint32_t segmented_bytes = 0;
  /// On a network that loses packets, a longer WRITE fails too early.
  std::uint64_t max_write_bytes = UINT64_MAX;
  /// A READ of at most this many bytes must lie on one page of the peer's memory.
  std::uint32_t one_page_read_max = 0;
  /// A key gives access to exactly the range that its window was bound to, on its own queue pair. When false,
  /// a key gives access to the whole region; a peer's SEND_WITH_INV can end the window of another queue pair,
  /// its sender is not notified when it is refused, and it may crash the kernel when the window is not bound.
  /// A device without it is fit for trusted peers only.
  bool exact_windows = true;
  /// When false, a peer that knows the key of a region may READ it whatever its rights are. A device without
  /// it is fit for trusted peers only.
  bool checks_read_rights = true;
  /// An operation that the peer refuses ends at the sender with a status that says so. When false, a SEND
  /// completes when the network has taken it, a refused access is flushed, and only the end of the connection
  /// shows that something was refused.
  bool names_refusals = true;
  /// A peer that once had a right to memory of alloc_memory() may go on writing to it at any time.
  bool peers_keep_access = false;

  /// Returns how many of the peer's `bytes` bytes at `addr` a single READ may fetch.
  std::uint32_t read_bytes(std::uint64_t addr, std::uint32_t bytes) const;
};

/// Returns why a device without Capabilities::on_demand refuses access_on_demand.
std::string why_not_on_demand(const Capabilities& capabilities);

/// Returns why no device with these capabilities registers that memory, or "" when it may. A device can have
/// further reasons of its own.
std::string why_not_register(const void* addr, std::size_t length, std::uint32_t access,
                             const Capabilities& capabilities);

/// One gather or scatter entry; `lkey` is the local key of the region that holds [addr, addr + length).
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

/// The smallest page size of any supported system; larger pages begin on a multiple of it.
inline constexpr std::uint32_t kPageBytes = 4096;
/// Returns how many of the `bytes` bytes at `addr` lie on the first page.
constexpr std::uint32_t on_page(std::uint64_t addr, std::uint32_t bytes) {
  const auto rest = static_cast<std::uint32_t>(kPageBytes - addr % kPageBytes);
  return bytes < rest ? bytes : rest;
}
inline std::uint32_t Capabilities::read_bytes(std::uint64_t addr, std::uint32_t bytes) const {
  return bytes <= one_page_read_max ? on_page(addr, bytes) : bytes;
}

struct SendWr {
  std::uint64_t wr_id = 0;
  Opcode opcode = Opcode::send;
  bool signaled = false;
  bool inline_data = false;  ///< total length ≤ max_inline; lkeys are ignored
  bool fence = false;        ///< waits for earlier READs of this queue pair
  std::span<const Sge> sges;
  std::uint64_t remote_addr = 0;      ///< rdma_*
  std::uint32_t rkey = 0;             ///< rdma_*
  std::uint32_t imm = 0;              ///< rdma_write_with_imm
  std::uint32_t invalidate_rkey = 0;  ///< send_with_inv, local_inv
  struct Bind {  ///< for bind_mw: post_send gives the window its new rkey before it returns
    MemoryWindow* window = nullptr;
    const MemoryRegion* region = nullptr;  ///< must be registered with access_mw_bind
    std::uint64_t addr = 0;
    std::uint64_t length = 0;
    std::uint32_t access = 0;  ///< access_remote_read or access_remote_write
  } bind;
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  Sge sge;
};

/// A work completion. `opcode`, `bytes`, `imm` and `invalidated_rkey` mean something only with success.
struct Wc {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::success;
  Opcode opcode = Opcode::send;
  bool has_imm = false;
  std::uint32_t qp_num = 0;
  std::uint32_t tag = 0;    ///< QpOptions::tag, for a completion of a shared receive
  std::uint32_t bytes = 0;  ///< number of bytes received, read or written
  std::uint32_t imm = 0;
  std::uint32_t invalidated_rkey = 0;  ///< for the recv of a send_with_inv; otherwise 0
  /// rdma_read: the peer's memory no longer exists or was revoked, and the bytes read are meaningless. The
  /// queue pair goes on. Only software fabrics can report this; on a device, registered memory is pinned and
  /// cannot disappear.
  bool memory_gone = false;
  /// recv with QpOptions::short_apart: where the message lies until the next poll(). Null when it lies in the
  /// buffer of its receive.
  const std::byte* apart = nullptr;
  /// recv that was flushed, with QpOptions::flush_together: number of receives that this completion stands
  /// for; wr_id is that of the oldest one.
  std::uint32_t receives = 1;
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;  ///< every queue pair on it must be destroyed first
  /// Moves up to out.size() completions to `out` and returns their number. Never blocks. Makes no system call
  /// when idle, except on fabrics whose wire is a kernel socket (tcp).
  virtual std::size_t poll(std::span<Wc> out) = 0;
  /// Asks that fd() becomes readable when the next completion arrives. Returns false when a completion is (or
  /// may be) waiting already: poll again before sleeping. One shot, as ibv_req_notify_cq; arm again after
  /// each wake-up.
  virtual bool arm() = 0;
  /// Disarms, and makes fd() unreadable. Call it after waking up, before polling.
  virtual void acknowledge() = 0;
  /// The descriptor to wait on (POLLIN) while armed.
  virtual int fd() const = 0;
  /// Returns true while a peer with unfinished work last ran on this CPU; spinning would then only keep it
  /// from running.
  virtual bool peer_shares_cpu() const { return false; }
};

struct QpOptions {
  std::uint32_t send_wr_max = 512;
  std::uint32_t recv_wr_max = 320;  ///< must be 0 with shared receives
  /// True on the side that requests the connection, false on the side that accepts it. Exactly one side of a
  /// pair is active, and that side sends first.
  bool active = true;
  /// Promises that the user polls the completion queue until it is empty, whatever happens, so that posted
  /// requests may be delayed until those polls. Otherwise each request is executed as far as possible when it
  /// is posted.
  bool polls_on = false;
  /// The user copies what it receives, so a short message may be delivered from a cache-hot buffer of this
  /// process instead of the buffer of its receive.
  bool short_apart = false;
  /// The user needs to know that its receives are flushed, but not about each one: one completion may stand
  /// for many. When thousands of connections end at once, they have a million receives.
  bool flush_together = false;
  class ReceiveQueue* shared_receives = nullptr;  ///< must belong to the same completion queue
  std::uint32_t tag = 0;
};

/// Returns why no device with these capabilities makes queues of these depths, or "" when it may.
std::string why_no_queues(const QpOptions& options, const Capabilities& capabilities);

/// Shared secrets by which the two sides recognise each other in the first message between their queue pairs,
/// when the sides that connect them have agreed on a key. They replace the tokens in the addresses.
struct FirstWords {
  std::array<std::byte, 16> own{}, peer{};
};

class QueuePair {
 public:
  /// destroys the queue pair; outstanding work is dropped without completions
  virtual ~QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  std::uint32_t qp_num() const { return qp_num_; }
  virtual QpState state() const = 0;

  /// The blob that the peer's connect() needs. At most 512 bytes, valid from creation (in state INIT receives
  /// may already be posted).
  virtual std::vector<std::byte> local_address() const = 0;
  /// INIT → RTR → RTS. Returns "" on success, or why this fabric cannot reach that peer (state is then ERR).
  /// The blob is untrusted bytes. Both sides call it, in any order. A fabric that needs the network for it
  /// returns at once with state() still RTR; a later poll() of the completion queue (fd() wakes for it when
  /// armed) moves to RTS, or to ERR with error(), within the fabric's time limit. post_send() takes no
  /// request before RTS.
  virtual std::string connect(std::span<const std::byte> remote_address) = 0;
  /// Call before connect(): this side then sends `own` in its first message, and accepts only a peer that
  /// sends `peer`. No effect on fabrics whose connection setup exchanges no message.
  virtual void set_first_words(const FirstWords& words) { static_cast<void>(words); }
  /// Why the queue pair moved to ERR, when neither its user nor a request with an error completion caused it:
  /// the peer, the device, or a connection attempt that failed. Set by the time the first flushed request is
  /// polled; empty otherwise.
  virtual std::string error() const { return {}; }

  /// Posts in order, with one doorbell for all. Returns how many requests were taken. Fewer than given means
  /// that the send queue is full (poll, then post the rest) or that a request is malformed (it completes with
  /// an error).
  virtual std::size_t post_send(std::span<const SendWr> requests) = 0;
  virtual std::size_t post_recv(std::span<const RecvWr> requests) = 0;
  /// Announces that requests are about to be posted, so that the memory which posting touches can be
  /// prefetched. Optional.
  virtual void expect_posts() const {}
  /// Maps what is needed to READ or WRITE that remote memory. Returns "" on success and where the request
  /// itself will report a failure. Otherwise returns why the memory cannot be reached now; the queue pair is
  /// unchanged.
  virtual std::string reach(std::uint32_t rkey, std::uint64_t addr, std::uint64_t bytes) {
    static_cast<void>(rkey), static_cast<void>(addr), static_cast<void>(bytes);
    return {};
  }
  /// Bytes of posted WRITEs that have not left yet, so that a SEND posted now would wait behind them. A
  /// device cannot tell; it returns the maximum, which stands for "all that have not completed".
  virtual std::uint64_t unsent_write_bytes() const { return UINT64_MAX; }
  /// Running total of bytes that READs have brought, including READs in progress. A device reports a READ
  /// only by its completion; it returns 0.
  virtual std::uint64_t read_bytes_arrived() const { return 0; }
  /// Whether messages of the peer may be waiting here that no poll has returned, although they were here when
  /// `mark` was made (message_mark()). Returns false only when that is certain: completions come in the order
  /// of the operations, the queue pair has been inspected and has no message, or as many completions as the
  /// queue can hold have been taken out of it since.
  virtual bool may_hold_messages(std::uint64_t mark) const {
    static_cast<void>(mark);
    return true;
  }
  /// Stands for everything that is in the completion queue now, for may_hold_messages().
  virtual std::uint64_t message_mark() const { return 0; }
  /// Revokes the peer's access to the memory behind a window of this queue pair, at once and without the
  /// peer: after this returns true, no byte of it is read or written through the window, and the memory and
  /// its region may go. READs that come later or are in progress complete at the peer as Wc::memory_gone.
  /// WRITEs complete as ever, and what they bring is discarded. The queue pair goes on, and the window stays
  /// bound until it is invalidated. Returns false, with nothing changed, where a device or the peer moves the
  /// bytes by itself. Only fabrics with Capabilities::reads_memory_late can do this.
  virtual bool revoke(std::uint32_t rkey) {
    static_cast<void>(rkey);
    return false;
  }
  /// Cancels this side's outstanding READs into [addr, addr + bytes). After it returns true, no byte is
  /// written there, whatever the peer does, and each of those READs completes as Wc::memory_gone when its
  /// response has come. Returns false, with nothing changed, where a device writes the memory directly. Only
  /// fabrics with Capabilities::reads_memory_late can do this.
  virtual bool abandon_reads(std::uint64_t addr, std::uint64_t bytes) {
    static_cast<void>(addr), static_cast<void>(bytes);
    return false;
  }
  /// Moves to ERR and flushes outstanding work. The last rule at the top of this file says what that
  /// guarantees for keys.
  virtual void to_error() = 0;

 protected:
  QueuePair() = default;
  std::uint32_t qp_num_ = 0;
};

/// Counters that return to their initial values when everything has been closed; read by leak tests and
/// `info`.
struct DeviceCounters {
  std::uint64_t queue_pairs = 0, receive_queues = 0, memory_regions = 0, memory_windows = 0;
  std::uint64_t memory_bytes = 0, open_fds = 0;
};

/// An opened device with its protection domain. It must outlive everything that it has created.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// Returns page-aligned, zeroed memory, or null when the system refuses; refusal() then says why.
  virtual std::unique_ptr<HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) = 0;
  /// Returns null when refused; `error` then says why, with the limit's name and number.
  virtual std::unique_ptr<MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                               std::string* error) = 0;
  /// Registers in two steps (Registration). Returns null when reg_mr() is too fast to need a second thread,
  /// or would refuse.
  virtual std::unique_ptr<Registration> begin_reg_mr(void*, std::size_t, std::uint32_t) { return nullptr; }
  /// Registers device memory (of a GPU, for example) that another driver has exported as `fd`; the addresses
  /// that the peer uses begin at `iova`. Devices without Capabilities::dmabuf refuse, with the reason.
  virtual std::unique_ptr<MemoryRegion> reg_dmabuf_mr(int fd, std::uint64_t offset, std::size_t length,
                                                      std::uint64_t iova, std::uint32_t access,
                                                      std::string* error);
  virtual std::unique_ptr<MemoryWindow> alloc_mw() = 0;
  /// `entries` is the initial size on devices that allocate entries in advance. The queue grows with the
  /// queue pairs made on it, which therefore never overrun it.
  virtual std::unique_ptr<CompletionQueue> create_cq(std::uint32_t entries) = 0;
  virtual std::unique_ptr<QueuePair> create_qp(CompletionQueue& cq, const QpOptions& options,
                                               std::string* error) = 0;
  /// Creates a receive queue for queue pairs on that completion queue, which can have one receive queue at a
  /// time.
  virtual std::unique_ptr<ReceiveQueue> create_receive_queue(CompletionQueue& cq, std::uint32_t receives,
                                                             std::string* error);
  virtual DeviceCounters counters() const = 0;
  /// Returns true after the device has been removed from the machine: it creates nothing new, its queue pairs
  /// go to ERR, and the system waits until it is closed. Noticed on a wake-up, or after some polls.
  bool is_gone() const { return gone_; }
  /// Why the last alloc_memory() or create_cq() returned null: the cause, its limit and what to do.
  const std::string& refusal() const { return refusal_; }

 protected:
  bool gone_ = false;
  std::string refusal_;
};

}  // namespace rdma_rpc::fabric
