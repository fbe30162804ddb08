// What a session needs of an RDMA device, named and behaving as libibverbs names it: devices, memory regions,
// memory windows, queue pairs and completion queues; shared receives are in receive_queue.h. Each folder
// beside this file is one implementation ("a fabric"). Called by native/memory (registration) and
// native/session (everything else), on one thread per Device: the thread that runs the context's event loop.
// A fabric knows nothing of calls; a session knows no fabric by name and asks `Capabilities` instead.
//
// Rules that every fabric keeps (the suite in native/test/fabric checks them on each):
//  - RC semantics: SENDs arrive complete, once and in order, each in the oldest posted receive of the peer.
//    A SEND that finds no posted receive ends with rnr_retry_exc_err at the sender (unless options have it
//    wait) and moves the queue pair to ERR.
//  - A buffer belongs to the fabric from post_* until its completion has been polled; an unsignaled work
//    request is complete once a later signaled one of the same send queue has been polled. An inline send
//    is copied before post_send returns.
//  - Error completions are always delivered, signaled or not. After the first one the queue pair is in ERR,
//    and every outstanding work request, and each posted later, completes with wr_flush_err.
//  - Keys, protection domain, rights and range are checked for each remote access. A violation gives
//    rem_access_err at the initiator, touches no byte, and moves both queue pairs to ERR.
//  - Once a LOCAL_INV has completed, or a SEND_WITH_INV naming the key has been polled, or the queue pair
//    of a window is in ERR and its flush has been polled, no access through that key can read or write a
//    byte any more, whatever the peer does.
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

/// Completion status, the names of `enum ibv_wc_status`.
enum class WcStatus : std::uint8_t {
  success,
  loc_len_err,      ///< a message longer than the receive posted for it, or a scatter list that is too short
  loc_qp_op_err,    ///< an operation this queue pair cannot do in its state
  loc_prot_err,     ///< a local SGE outside its memory region, or with a wrong lkey
  wr_flush_err,     ///< flushed: the queue pair went to ERR before the request was carried out
  mw_bind_err,      ///< a window that may not be bound as asked
  rem_inv_req_err,  ///< the peer could not accept the message (too long for its receive, unknown key to
                    ///< invalidate)
  rem_access_err,   ///< key, right, range or protection domain refused by the peer
  retry_exc_err,    ///< the peer does not answer
  rnr_retry_exc_err,  ///< the peer had no receive posted
  rem_abort_err,      ///< the peer closed
  general_err,
};
const char* to_string(WcStatus status);

enum class Opcode : std::uint8_t {
  send,
  send_with_inv,  ///< as send; the peer's window `SendWr::invalidate_rkey` is invalid when the receive
                  ///< completes
  rdma_write,
  rdma_write_with_imm,  ///< only if Capabilities::immediate
  rdma_read,
  bind_mw,             ///< bind SendWr::bind.window; its key may be used by a later SEND on this queue pair
  local_inv,           ///< invalidate SendWr::invalidate_rkey, a window bound on this queue pair
  recv,                ///< in completions only
  recv_rdma_with_imm,  ///< in completions only
};

enum class QpState : std::uint8_t { reset, init, rtr, rts, err };
const char* to_string(QpState state);

/// What a device can do. `probed` figures come from trying, never from a constant of the device's name.
struct Capabilities {
  std::string name;        ///< "shm", "sim" or a device such as "mlx5_0"; for people, never for decisions
  std::uint32_t port = 0;  ///< of the device, 0 where there are none; for people, too
  std::string path;        ///< what its queue pairs are reached by; for people, too
  std::uint32_t max_inline = 0;               ///< bytes; a longer send cannot carry the inline flag
  std::uint32_t max_sge = 1;                  ///< gather entries of a send or write
  std::uint32_t max_sge_read = 1;             ///< scatter entries of a read
  std::uint32_t max_qp_wr = 0;                ///< the deepest send or receive queue
  std::uint32_t max_srq_wr = 0;               ///< the deepest shared receive queue; 0: there are none
  std::uint32_t max_rd_atomic = 16;           ///< outstanding READs per queue pair that make progress at once
  std::uint32_t max_memories = 0;             ///< of alloc_memory() at once; 0: as many as the system gives
  std::uint64_t max_msg_bytes = 0;            ///< one SEND, READ or WRITE
  bool immediate = false;                     ///< rdma_write_with_imm
  bool windows = false;                       ///< type-2 memory windows, local_inv and send_with_inv
  bool read_sink_needs_remote_write = false;  ///< iWARP
  bool active_side_sends_first = false;       ///< iWARP (MPA)
  bool pins_memory = false;                   ///< registration counts against RLIMIT_MEMLOCK
  bool exposes_any_memory = false;  ///< memory outside alloc_memory() may be exposed to the peer too
  bool on_demand = false;           ///< access_on_demand for RC SEND, READ and WRITE (explicit ODP)
  bool dmabuf = false;              ///< reg_dmabuf_mr()
  /// A READ or WRITE is a copy by the thread that posts it, inside of post_send(): until it is over nothing
  /// else of that thread gets on.
  bool copies_when_posted = false;
  /// This process's CPU reads what is sent, turns after the post, and nothing is pinned: what its owner can
  /// take away meanwhile (Presence) must be copied to memory that lasts. QueuePair::withdraw() and
  /// abandon_reads() work.
  bool reads_memory_late = false;
  /// A request of up to this many bytes from memory of the application costs less when it is copied to memory
  /// of alloc_memory() first than when the peer READs it from where it lies. 0: none does.
  std::uint32_t copied_request_bytes = 0;
  /// A message of so many bytes at most costs less in several SENDs, each copied twice, than by READ or WRITE
  /// of memory that is shown for it. 0: none does, or nobody has measured.
  std::uint32_t segmented_bytes = 0;
  /// A longer WRITE is given up too early where packets are lost.
  std::uint64_t max_write_bytes = UINT64_MAX;
  /// A READ of so many bytes or fewer must lie on one page of the peer's memory.
  std::uint32_t one_page_read_max = 0;
  /// A key opens what its window was bound to, on its own queue pair, and nothing else. Without: it opens all
  /// of the region; a peer's SEND_WITH_INV can end the window of another queue pair, tells its sender nothing
  /// when it is refused, and may crash the kernel when the window is not bound. Good for peers that are
  /// trusted.
  bool exact_windows = true;
  /// Without, whoever knows the key of a region may READ it, whatever its rights are. Good for peers that are
  /// trusted.
  bool checks_read_rights = true;
  /// What a peer refuses ends at the sender with a status that says so. Without: a SEND is complete when the
  /// network has it, an access that is refused is flushed, and the end of the connection is all that tells.
  bool names_refusals = true;
  /// A peer may go on writing, at any time, to memory of alloc_memory() that it has once had a right to.
  bool peers_keep_access = false;

  /// Of `bytes` bytes of the peer's memory at `addr`, how many one READ may bring.
  std::uint32_t read_bytes(std::uint64_t addr, std::uint32_t bytes) const;
};

/// Why a device without Capabilities::on_demand refuses access_on_demand.
std::string why_not_on_demand(const Capabilities& capabilities);

/// Why no device with these capabilities registers that memory; '' when it may. Each has reasons of its own
/// besides.
std::string why_not_register(const void* addr, std::size_t length, std::uint32_t access,
                             const Capabilities& capabilities);

/// One gather or scatter entry; `lkey` is the local key of the region that holds [addr, addr + length).
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

/// The smallest there are: larger ones begin where these do.
inline constexpr std::uint32_t kPageBytes = 4096;
/// Of `bytes` bytes at `addr`, those on the first page.
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
  bool inline_data = false;  ///< total length ≤ max_inline; lkeys are not looked at
  bool fence = false;        ///< wait for earlier READs of this queue pair
  std::span<const Sge> sges;
  std::uint64_t remote_addr = 0;      ///< rdma_*
  std::uint32_t rkey = 0;             ///< rdma_*
  std::uint32_t imm = 0;              ///< rdma_write_with_imm
  std::uint32_t invalidate_rkey = 0;  ///< send_with_inv, local_inv
  struct Bind {                       ///< bind_mw: post_send gives the window its new rkey before it returns
    MemoryWindow* window = nullptr;
    const MemoryRegion* region = nullptr;  ///< registered with access_mw_bind
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
  std::uint32_t tag = 0;    ///< of a shared receive: QpOptions::tag
  std::uint32_t bytes = 0;  ///< received, read or written
  std::uint32_t imm = 0;
  std::uint32_t invalidated_rkey = 0;  ///< recv of a send_with_inv; 0: none
  /// rdma_read: the peer's memory is not there any more, or was withdrawn, and what was read means nothing.
  /// The queue pair goes on. Only fabrics in software can tell: a device pins what is registered, so there it
  /// stays.
  bool vanished = false;
  /// recv, with QpOptions::short_apart: where the message lies until the next poll(). Null: in the buffer.
  const std::byte* apart = nullptr;
  /// recv, flushed, with QpOptions::flush_together: stands for so many receives, its own the oldest.
  std::uint32_t receives = 1;
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;  ///< every queue pair on it is gone
  /// Moves up to out.size() completions to `out`; returns how many. Never blocks. Makes no system call when
  /// idle, except where the wire is the kernel's own (tcp).
  virtual std::size_t poll(std::span<Wc> out) = 0;
  /// Asks that fd() becomes readable when the next completion arrives. False: something is there already (or
  /// may be), poll again before sleeping. One shot, as ibv_req_notify_cq; arm again after each wake-up.
  virtual bool arm() = 0;
  /// Disarms, and makes fd() not readable. Call it when awake again, before polling.
  virtual void acknowledge() = 0;
  /// A descriptor to wait on (POLLIN) while armed.
  virtual int fd() const = 0;
  /// True while a peer that has work to do last ran on this CPU, so that spinning would only keep it from
  /// running.
  virtual bool peer_shares_cpu() const { return false; }
};

struct QpOptions {
  std::uint32_t send_wr_max = 512;
  std::uint32_t recv_wr_max = 320;  ///< 0 with shared receives
  /// The side that asks for the connection; the other one answers. Exactly one side of a pair, and the first
  /// to send.
  bool active = true;
  /// Its user goes on polling the completion queue until nothing is left, whatever happens: what is posted
  /// meanwhile may wait for that. Without it a request goes when it is posted, as far as it can.
  bool polls_on = false;
  /// Its user copies what it receives, and can take short messages from memory of this process that is hot.
  bool short_apart = false;
  /// Its user wants to know that its receives are flushed, not of each: a fabric may tell it of many with one
  /// completion. Thousands of connections that end at once are a million receives.
  bool flush_together = false;
  class ReceiveQueue* shared_receives = nullptr;  ///< made for the same completion queue
  std::uint32_t tag = 0;
};

/// Why no device with these capabilities makes queues of these depths; '' when it may.
std::string why_no_queues(const QpOptions& options, const Capabilities& capabilities);

/// By what the two sides know each other in the first message between their queue pairs, where those who
/// connect them have a key: instead of tokens that stand in the addresses.
struct FirstWords {
  std::array<std::byte, 16> own{}, peer{};
};

class QueuePair {
 public:
  virtual ~QueuePair() = default;  ///< destroys; outstanding work is dropped without completions
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  std::uint32_t qp_num() const { return qp_num_; }
  virtual QpState state() const = 0;

  /// The blob that the peer's connect() needs; at most 512 bytes, valid from creation (state INIT: receives
  /// may be posted).
  virtual std::vector<std::byte> local_address() const = 0;
  /// INIT → RTR → RTS. Returns an empty string, or why this fabric cannot reach that peer (state then is
  /// ERR). The blob is untrusted bytes. Both sides call it, in any order. A fabric may need the network for
  /// it: then it returns at once with state() still RTR, and a later poll() of the completion queue (fd()
  /// wakes for it when armed) moves to RTS, or to ERR with error(), within the fabric's time limit.
  /// post_send() takes nothing before RTS.
  virtual std::string connect(std::span<const std::byte> remote_address) = 0;
  /// Before connect(): this side says `own` when it connects, or is connected to, and takes nobody but who
  /// says `peer`. Nothing, on fabrics whose queue pairs say nothing before their first work request.
  virtual void set_first_words(const FirstWords& words) { static_cast<void>(words); }
  /// What moved it to ERR, where that was neither its user nor a request whose completion tells: the peer,
  /// the device, a connection that came to nothing. Known when the first request is seen to have been
  /// flushed; empty otherwise.
  virtual std::string error() const { return {}; }

  /// Posts in order, with one doorbell for all. Returns how many were taken; fewer than given means that the
  /// send queue is full (poll, then go on with the rest) or that a request is malformed (it completes with an
  /// error).
  virtual std::size_t post_send(std::span<const SendWr> requests) = 0;
  virtual std::size_t post_recv(std::span<const RecvWr> requests) = 0;
  /// Requests are about to be posted: what that will touch is fetched into the cache, if that is worth
  /// anything.
  virtual void expect_posts() const {}
  /// Gets what this side needs of its system for a READ or WRITE of that memory of the peer. Empty: all is
  /// there, or the request itself will tell; else why that memory cannot be reached now, and the queue pair
  /// is as it was.
  virtual std::string reach(std::uint32_t rkey, std::uint64_t addr, std::uint64_t bytes) {
    static_cast<void>(rkey), static_cast<void>(addr), static_cast<void>(bytes);
    return {};
  }
  /// Of the WRITEs that have been posted, the bytes that are still here, so that a SEND posted now would wait
  /// for them. A device cannot tell: then it may be all that have not completed.
  virtual std::uint64_t unsent_write_bytes() const { return UINT64_MAX; }
  /// Bytes that READs have brought so far, counting on, those of READs under way included. A device tells
  /// only of READs that are over, by their completions: then it is 0.
  virtual std::uint64_t read_bytes_arrived() const { return 0; }
  /// Whether messages of the peer may lie here that no poll has brought, although they were here when `mark` was
  /// made (message_mark()). Returns false where that is certain not to be so: completions come in the order of
  /// what they are of, the queue pair has been looked at and has none, or as many completions as the queue can
  /// hold have been taken out of it since.
  virtual bool may_hold_messages(std::uint64_t mark) const {
    static_cast<void>(mark);
    return true;
  }
  /// Stands for everything that lies in the completion queue now, for may_hold_messages().
  virtual std::uint64_t message_mark() const { return 0; }
  /// Takes the memory behind a window of this queue pair away from the peer, at once and without it: when this
  /// returns true, no byte is read or written there through the window any more, and the memory and its region
  /// may go. READs that come, or are under way, complete at the peer as Wc::vanished. WRITEs complete as ever,
  /// and what they bring is thrown away. The queue pair goes on, and the window is bound until it is
  /// invalidated. Returns false where a device or the peer moves the bytes by itself; nothing has changed then.
  /// Only fabrics with Capabilities::reads_memory_late can.
  virtual bool withdraw(std::uint32_t rkey) {
    static_cast<void>(rkey);
    return false;
  }
  /// Gives up this side's READs into [addr, addr + bytes) that have not completed. When it returns true, no
  /// byte is written there any more, whatever the peer does, and each of those READs completes as
  /// Wc::vanished when its answer has come. Returns false where a device writes by itself; nothing has
  /// changed then. Only fabrics with Capabilities::reads_memory_late can.
  virtual bool abandon_reads(std::uint64_t addr, std::uint64_t bytes) {
    static_cast<void>(addr), static_cast<void>(bytes);
    return false;
  }
  /// Moves to ERR: outstanding work flushes; see the last rule above for what that promises.
  virtual void to_error() = 0;

 protected:
  QueuePair() = default;
  std::uint32_t qp_num_ = 0;
};

/// Counters that return to their start when everything has been closed; read by leak tests and `info`.
struct DeviceCounters {
  std::uint64_t queue_pairs = 0, receive_queues = 0, memory_regions = 0, memory_windows = 0;
  std::uint64_t memory_bytes = 0, open_fds = 0;
};

/// An opened device with its protection domain. Outlives everything that it has made.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// Page-aligned, zeroed. Null when the system refuses; refusal() then says why.
  virtual std::unique_ptr<HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) = 0;
  /// Null when refused (`error` then says why, with the limit's name and number).
  virtual std::unique_ptr<MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                               std::string* error) = 0;
  /// The same in two steps. Null: reg_mr() takes no time worth a second thread, or would refuse.
  virtual std::unique_ptr<Registration> begin_reg_mr(void*, std::size_t, std::uint32_t) { return nullptr; }
  /// A region of device memory (a GPU's, say) that another driver has exported as `fd`; the peer's addresses
  /// begin at `iova`. Refused, with the reason, by devices without Capabilities::dmabuf.
  virtual std::unique_ptr<MemoryRegion> reg_dmabuf_mr(int fd, std::uint64_t offset, std::size_t length,
                                                      std::uint64_t iova, std::uint32_t access,
                                                      std::string* error);
  virtual std::unique_ptr<MemoryWindow> alloc_mw() = 0;
  /// `entries` is where a device that makes room ahead begins: it grows with the queue pairs made on it,
  /// which never overrun it.
  virtual std::unique_ptr<CompletionQueue> create_cq(std::uint32_t entries) = 0;
  virtual std::unique_ptr<QueuePair> create_qp(CompletionQueue& cq, const QpOptions& options,
                                               std::string* error) = 0;
  /// For queue pairs on that completion queue, which can have one of them at a time.
  virtual std::unique_ptr<ReceiveQueue> create_receive_queue(CompletionQueue& cq, std::uint32_t receives,
                                                             std::string* error);
  virtual DeviceCounters counters() const = 0;
  /// It has been removed from the machine: nothing new is made on it, its queue pairs go to ERR, and the
  /// system waits until it is closed. Known after a wake-up, or a while of polling.
  bool is_gone() const { return gone_; }
  /// Why alloc_memory() or create_cq() has just returned null: the cause, its limit and what to do.
  const std::string& refusal() const { return refusal_; }

 protected:
  bool gone_ = false;
  std::string refusal_;
};

}  // namespace rdma_rpc::fabric
