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
//  - An atomic is atomic against other remote atomics to that memory, and against nothing else.
//  - A key is dead once its LOCAL_INV has completed, or a SEND_WITH_INV naming it has been polled, or the
//    queue pair of its window is in ERR and its flush has been polled. From then on no access through that
//    key can read or write a byte, whatever the peer does.
//  - UC: a message that loses a packet is dropped whole, and a WRITE may then have written a part. A
//    message that the peer refuses is dropped, too, without an error. SENDs and WRITEs complete when they have
//    left.
//  - UD: each SEND is one datagram of at most max_datagram_bytes, to any queue pair; it may be lost, doubled
//    or overtaken. One with another Q_Key, or without a posted receive, is dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/address_handle.h"
#include "fabric/capabilities.h"
#include "fabric/memory.h"
#include "fabric/work_request.h"

namespace rdma_rpc::fabric {

enum class QpType : std::uint8_t { rc, uc, ud };
const char* to_string(QpType type);

/// SQD: sends are stopped on request. SQE: a send has failed on a UC or UD queue pair.
enum class QpState : std::uint8_t { reset, init, rtr, rts, err, sqd, sqe };
const char* to_string(QpState state);

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
  /// As arm(), but fd() becomes readable only when a message comes that its sender has solicited, or when a
  /// request fails. Without Capabilities::solicited, every completion wakes.
  virtual bool arm_solicited() { return arm(); }
  /// Disarms, and makes fd() unreadable. Call it after waking up, before polling.
  virtual void acknowledge() = 0;
  /// The descriptor to wait on (POLLIN) while armed.
  virtual int fd() const = 0;
  /// Returns true while a peer with unfinished work last ran on this CPU; spinning would then only keep it
  /// from running.
  virtual bool peer_shares_cpu() const { return false; }
};

struct QpOptions {
  QpType type = QpType::rc;
  /// UD: only datagrams that carry it are received. Its top bit must be 0.
  std::uint32_t qkey = 0;
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
  /// The most gather entries and inline bytes of its requests; 0 for all that the device can do. A NIC has
  /// room for them in each entry of its send queue, in memory of the kernel.
  std::uint32_t max_sge = 0, max_inline = 0;
  class ReceiveQueue* shared_receives = nullptr;  ///< must belong to the same completion queue
  std::uint32_t tag = 0;
};

/// Returns why no device with these capabilities makes a queue pair of this type with queues of these depths,
/// or "" when it may.
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
  /// request before RTS. A UD queue pair has no peer: the address must be empty, and it is in RTS at once.
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
  /// WRITEs complete as usual, but their bytes are discarded. The queue pair stays usable, and the window
  /// stays bound until it is invalidated. Returns false, with nothing changed, where a device or the peer
  /// moves the bytes by itself. Only fabrics with Capabilities::reads_memory_late can do this.
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
  /// Moves to that state, as ibv_modify_qp; returns "" on success, or why not, with nothing changed:
  ///  - RTS → SQD: starts no further send request; Device::poll_events() tells when those started are done.
  ///  - SQD → RTS and SQE → RTS: goes on. (A send that fails on a UC or UD queue pair leads to SQE, where
  ///    only sends are flushed.)
  ///  - any → RESET → INIT: drops both queues without completions, and can connect() again.
  virtual std::string move_to(QpState state);
  /// UD: receives also the datagrams to that multicast group, or no longer. Returns "", or why not.
  virtual std::string attach_multicast(const Gid& group);
  virtual std::string detach_multicast(const Gid& group);
  /// Moves to ERR and flushes outstanding work. The last rule at the top of this file says what that
  /// guarantees for keys.
  virtual void to_error() = 0;

 protected:
  QueuePair() = default;
  std::uint32_t qp_num_ = 0;
};

/// A device's report apart from completions, like `struct ibv_async_event`.
struct AsyncEvent {
  enum class Kind : std::uint8_t {
    sq_drained,         ///< the queue pair is in SQD and has no request under way
    srq_limit_reached,  ///< fewer receives are posted than ReceiveQueue::arm_limit() said
    qp_fatal,           ///< the queue pair has failed; QueuePair::error() says why
    port_active,        ///< of Capabilities::port
    port_error,
    device_fatal,  ///< is_gone()
  };
  Kind kind = Kind::qp_fatal;
  std::uint32_t qp_num = 0;                      ///< of a queue pair
  const class ReceiveQueue* receives = nullptr;  ///< of a shared receive queue
};
const char* to_string(AsyncEvent::Kind kind);

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
  /// Whether the last reg_mr() was refused for the memory itself (read-only, of a file), so that it would be
  /// refused again however many other regions are given up.
  bool refused_for_the_memory() const { return refused_for_the_memory_; }
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
  /// Makes a handle for datagrams to that port or group. Returns null when refused, with the reason in
  /// `error`.
  virtual std::unique_ptr<AddressHandle> create_ah(const AhAttr& attr, std::string* error);
  /// Makes a handle to the sender of a datagram: `wc` is its completion, and `grh` the first kGrhBytes of its
  /// receive.
  virtual std::unique_ptr<AddressHandle> create_ah_from(const Wc& wc, const std::byte* grh,
                                                        std::string* error);
  /// The GID that peers need to send datagrams to this device; all 0 where there is none.
  virtual Gid gid() const { return {}; }
  /// Moves up to out.size() events to `out`, oldest first, and returns their number. Events are noticed on a
  /// wake-up of a completion queue, or after some polls. Those beyond 1024 that nobody takes are lost.
  std::size_t poll_events(std::span<AsyncEvent> out);
  virtual DeviceCounters counters() const = 0;
  /// Returns true after the device has been removed from the machine: it creates nothing new, its queue pairs
  /// go to ERR, and the system waits until it is closed. Noticed on a wake-up, or after some polls.
  bool is_gone() const { return gone_; }
  /// Why the last alloc_memory() or create_cq() returned null: the cause, its limit and what to do.
  const std::string& refusal() const { return refusal_; }

 protected:
  /// Queues an event for poll_events().
  void note_event(const AsyncEvent& event);

  bool gone_ = false;
  bool refused_for_the_memory_ = false;
  std::string refusal_;

 private:
  std::deque<AsyncEvent> events_;
};

}  // namespace rdma_rpc::fabric
