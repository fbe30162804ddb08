// This file has the RDMA operations that a session needs, with the names and behaviour that they have in
// libibverbs: devices, memory regions, memory windows, queue pairs and completion queues. Shared receive
// queues are in receive_queue.h. Each folder beside this file is one implementation ("a fabric"). This code
// is called on one thread per Device, the thread that runs the context's event loop: by native/memory for
// registrations, and by native/session for everything else. A fabric knows nothing of calls. A session looks
// at `Capabilities` instead of the name of the fabric.
//
// Every fabric keeps these rules (the suite in native/test/fabric checks them on each):
//  - RC semantics: SENDs arrive complete, once and in order, each in the oldest posted receive of the peer. A
//    SEND that finds no posted receive ends with rnr_retry_exc_err at the sender and moves the queue pair to
//    ERR. An option can make the SEND wait instead.
//  - A buffer belongs to the fabric from post_* until the completion of its work request has been polled. An
//    unsignaled work request is complete when the completion of a later signaled work request of the same
//    send queue has been polled. An inline send is copied before post_send returns.
//  - Error completions are always delivered, whether their work requests are signaled or unsignaled. After
//    the first one the queue pair is in ERR, and every outstanding or later work request completes with
//    wr_flush_err.
//  - Keys, protection domain, rights and range are checked for each remote access. A violation accesses no
//    byte, ends with rem_access_err at the initiator, and moves both queue pairs to ERR.
//  - An atomic is atomic only with respect to other remote atomics on that memory.
// - A key is dead after one of three events: its LOCAL_INV has completed; a receive of a SEND_WITH_INV that
//   names it has been polled; or the queue pair of its window is in ERR and its flush has been polled. From
//   then on no access by the peer through that key can read or write a byte.
//  - UC: a message that loses a packet is dropped whole; a part of a WRITE may have been written by then. A
//    message that the peer refuses is also dropped, without an error. SENDs and WRITEs complete when they
//    have been sent.
//  - UD: each SEND is one datagram of at most max_datagram_bytes, to any queue pair. A datagram may be lost,
//    duplicated or reordered. A datagram with another Q_Key, or one that finds no posted receive, is dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
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
  virtual ~CompletionQueue() = default;  ///< every queue pair that uses the queue must be destroyed first
  /// Moves up to out.size() completions to `out` and returns their number. Never blocks. Makes no system call
  /// when the queue is idle, except on fabrics whose wire is a kernel socket (tcp).
  virtual std::size_t poll(std::span<Wc> out) = 0;
  /// Asks that fd() becomes readable when the next completion arrives. Returns false when a completion is (or
  /// may be) waiting already; the caller must then poll again before it sleeps. Arming works once, like
  /// ibv_req_notify_cq: the caller arms again after each wake-up.
  virtual bool arm() = 0;
  /// Does the same as arm(), but fd() becomes readable only when a message arrives that its sender has marked
  /// as solicited, or when a request fails. On devices without Capabilities::solicited, every completion
  /// wakes the sleeping thread.
  virtual bool arm_solicited() { return arm(); }
  /// Disarms, and makes fd() unreadable. Must be called after a wake-up, before polling.
  virtual void acknowledge() = 0;
  /// Returns the descriptor to wait for (POLLIN) while the queue is armed.
  virtual int fd() const = 0;
  /// Returns true when a peer with unfinished work last ran on this CPU. Spinning would then only keep the
  /// peer from running.
  virtual bool peer_shares_cpu() const { return false; }
};

struct QpOptions {
  QpType type = QpType::rc;
  /// UD: only datagrams that contain this Q_Key are received. The top bit of the Q_Key must be 0.
  std::uint32_t qkey = 0;
  std::uint32_t send_wr_max = 512;
  std::uint32_t recv_wr_max = 320;  ///< must be 0 with shared receives
  /// True on the side that requests the connection, false on the side that accepts it. Exactly one side of a
  /// pair is active, and the active side sends first.
  bool active = true;
  /// The user promises to poll the completion queue until it is empty, in all cases. Posted requests may
  /// therefore be delayed until those polls. When this option is false, each request is executed as far as
  /// possible when it is posted.
  bool polls_on = false;
  /// The user moves the queue pair from state to state, where Capabilities::steps says that this works. The
  /// queue pair begins in RESET. move_to() leads to INIT. connect() waits for the network and stops in RTR,
  /// where the queue pair only receives. move_to() leads to RTS.
  bool stepwise = false;
  /// The user copies what it receives. Therefore a short message may be delivered from a cache-hot buffer of
  /// this process instead of the buffer of its receive.
  bool short_apart = false;
  /// The user needs to know when its receives have been flushed, but needs no completion for each receive.
  /// Therefore one completion may stand for many receives. When thousands of connections end at once, they
  /// have a million receives.
  bool flush_together = false;
  /// Limits of the gather entries and the inline bytes of one request; 0 stands for the limits of the device.
  /// A NIC reserves room for them in each entry of its send queue, which is memory of the kernel.
  std::uint32_t max_sge = 0, max_inline = 0;
  /// Time limit of connect() in ms, on devices whose own limit (VerbsOptions::connect_timeout_ms) is longer. 0
  /// stands for the limit of the device. Other fabrics ignore this value.
  std::uint32_t connect_timeout_ms = 0;
  class ReceiveQueue* shared_receives = nullptr;  ///< must belong to the same completion queue
  std::uint32_t tag = 0;
};

/// Returns "" when a device with these capabilities may create a queue pair of this type with queues of these
/// depths. Otherwise returns the reason why it may not.
std::string why_no_queues(const QpOptions& options, const Capabilities& capabilities);

/// Shared secrets by which the two sides recognise each other in the first message between their queue pairs.
/// The secrets are used when the applications on both sides have agreed on a key. The secrets replace the
/// tokens in the addresses.
struct FirstWords {
  std::array<std::byte, 16> own{}, peer{};
};

/// The kernel's counters of a connection. The bytes are those of its frames, in both directions.
struct PathProgress {
  std::uint64_t acknowledged = 0;  ///< sent bytes that the peer's kernel has acknowledged
  std::uint64_t pending = 0;       ///< bytes that were given to the kernel and are not acknowledged
  std::uint64_t received = 0;      ///< bytes that have arrived
};

class QueuePair {
 public:
  /// Destroys the queue pair. Outstanding work is dropped without completions.
  virtual ~QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  std::uint32_t qp_num() const { return qp_num_; }
  virtual QpState state() const = 0;

  /// Returns the address blob that the peer's connect() needs. The blob has at most 512 bytes and is valid as
  /// soon as the queue pair exists. (In state INIT receives may already be posted.)
  virtual std::vector<std::byte> local_address() const = 0;
  /// Connects: INIT → RTR → RTS. Returns "", or the reason why this fabric cannot reach that peer. In the
  /// second case, the state is ERR. The blob consists of untrusted bytes. Both sides call connect(), in any
  /// order. A fabric that needs the network to connect returns at once, while state() is still RTR. A later
  /// poll() of the completion queue then moves to RTS, or to ERR with error(), within the fabric's time
  /// limit. The fd() of an armed queue becomes readable when the state moves. post_send() accepts no request
  /// before RTS. A UD queue pair has no peer: its address must be empty, and it is in RTS at once.
  virtual std::string connect(std::span<const std::byte> remote_address) = 0;
  /// Must be called before connect(). This side then sends `own` in its first message, and accepts only a
  /// peer that sends `peer`. Has no effect on fabrics whose connection setup exchanges no message.
  virtual void set_first_words(const FirstWords& words) { static_cast<void>(words); }
  /// Returns the reason why the queue pair moved to ERR, when the cause was the peer, the device, or a failed
  /// connection attempt. The text is set when the first flushed request is polled. The text is empty when the
  /// user caused the move, or a request with an error completion.
  virtual std::string error() const { return {}; }

  /// Posts in order, with one doorbell for all. Returns how many requests were accepted. The number is lower
  /// than the given one when the send queue is full (the caller must poll, and then post the rest), or when a
  /// request is malformed (this request completes with an error).
  virtual std::size_t post_send(std::span<const SendWr> requests) = 0;
  virtual std::size_t post_recv(std::span<const RecvWr> requests) = 0;
  /// Announces that requests will be posted soon, so that the memory that posting accesses can be prefetched.
  /// Callers may omit this call.
  virtual void expect_posts() const {}
  /// Maps the memory that is needed to READ or WRITE that remote memory. Returns "" on success, or when the
  /// request itself will report a failure. Otherwise returns why the memory cannot be reached now; the queue
  /// pair is then unchanged.
  virtual std::string reach(std::uint32_t rkey, std::uint64_t addr, std::uint64_t bytes) {
    static_cast<void>(rkey), static_cast<void>(addr), static_cast<void>(bytes);
    return {};
  }
  /// Returns the number of bytes of posted WRITEs that have not been sent yet, so that a SEND that is posted
  /// now would wait behind them. A device cannot know this number. A device returns the maximum, which
  /// includes all WRITEs that have not completed.
  virtual std::uint64_t unsent_write_bytes() const { return UINT64_MAX; }
  /// Returns the total number of bytes that READs have fetched, including READs in progress. A device reports
  /// a READ only by its completion, so it returns 0.
  virtual std::uint64_t read_bytes_arrived() const { return 0; }
  /// Asks the kernel how far the bytes of the connection have come, which takes two system calls. Returns
  /// nothing on fabrics whose connections are not sockets, and when there is no connection.
  virtual std::optional<PathProgress> path_progress() const { return std::nullopt; }
  /// Returns whether messages that had arrived when `mark` was made (message_mark()) may still be unpolled.
  /// Returns false in three cases: (1) this fabric's completions come in the order of the operations, (2) the
  /// queue pair was inspected and has no message, or (3) the polls since `mark` have returned as many
  /// completions as the queue can hold.
  virtual bool may_hold_messages(std::uint64_t mark) const {
    static_cast<void>(mark);
    return true;
  }
  /// Returns a mark for may_hold_messages(). The mark includes everything that is in the completion queue
  /// now.
  virtual std::uint64_t message_mark() const { return 0; }
  /// Revokes the peer's access to the memory behind a window of this queue pair, at once and without the
  /// peer. After this returns true, no byte of the memory is read or written through the window, and the
  /// memory and its region may be released. READs that arrive later or are in progress complete at the peer
  /// as Wc::memory_gone. WRITEs complete as usual, but their bytes are discarded. The queue pair stays
  /// usable, and the window stays bound until it is invalidated. Returns false, and changes nothing, when a
  /// device or the peer moves the bytes by itself. Only fabrics with Capabilities::reads_memory_late can do
  /// this.
  virtual bool revoke(std::uint32_t rkey) {
    static_cast<void>(rkey);
    return false;
  }
  /// Cancels this side's outstanding READs into [addr, addr + bytes). After this returns true, no byte is
  /// written there, independent of what the peer does. Each of those READs completes as Wc::memory_gone when
  /// its response has arrived. Returns false, and changes nothing, when a device writes the memory directly.
  /// Only fabrics with Capabilities::reads_memory_late can do this.
  virtual bool abandon_reads(std::uint64_t addr, std::uint64_t bytes) {
    static_cast<void>(addr), static_cast<void>(bytes);
    return false;
  }
  /// Moves to `state`, as ibv_modify_qp does. Returns "", or why the queue pair cannot be moved to `state`;
  /// nothing has changed then. The transitions:
  ///  - RTS → SQD: starts no further send request; Device::poll_events() reports when the requests that were
  ///    already started have completed.
  ///  - SQD → RTS and SQE → RTS: continues to send. (A send that fails on a UC or UD queue pair leads to SQE,
  ///    where only sends are flushed.)
  ///  - any → RESET → INIT: drops both queues without completions. The queue pair can then connect() again.
  ///  - RESET → INIT and RTR → RTS: the steps of QpOptions::stepwise.
  virtual std::string move_to(QpState state);
  /// UD: Starts or stops the reception of the datagrams that are sent to that multicast group. Returns "" on
  /// success, or the reason why the group cannot be joined or left.
  virtual std::string attach_multicast(const Gid& group);
  virtual std::string detach_multicast(const Gid& group);
  /// Moves to ERR and flushes outstanding work. The rule about dead keys at the top of this file applies.
  virtual void to_error() = 0;

 protected:
  QueuePair() = default;
  std::uint32_t qp_num_ = 0;
};

/// An event of the device that is not a completion, like `struct ibv_async_event`.
struct AsyncEvent {
  enum class Kind : std::uint8_t {
    sq_drained,         ///< the queue pair is in SQD and has no request in progress
    srq_limit_reached,  ///< fewer receives are posted than were given to ReceiveQueue::arm_limit()
    qp_fatal,           ///< the queue pair has failed; QueuePair::error() says why
    port_active,        ///< the port Capabilities::port has become active
    port_error,
    device_fatal,  ///< is_gone() has become true
  };
  Kind kind = Kind::qp_fatal;
  std::uint32_t qp_num = 0;                      ///< set for events of a queue pair
  const class ReceiveQueue* receives = nullptr;  ///< set for events of a shared receive queue
};
const char* to_string(AsyncEvent::Kind kind);

/// Counters that return to their initial values when everything has been closed. Leak tests and `info` read
/// them.
struct DeviceCounters {
  std::uint64_t queue_pairs = 0, receive_queues = 0, memory_regions = 0, memory_windows = 0;
  std::uint64_t memory_bytes = 0, open_fds = 0;
};

/// An opened device with its protection domain. The device must outlive everything that it has created.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// Returns page-aligned, zeroed memory, or null when the system refuses; refusal() then returns the reason.
  virtual std::unique_ptr<HostMemory> alloc_memory(std::size_t bytes, std::string_view purpose) = 0;
  /// Registers memory. Returns null when the memory is refused; `error` then gives the reason, with the
  /// limit's name and value.
  virtual std::unique_ptr<MemoryRegion> reg_mr(void* addr, std::size_t length, std::uint32_t access,
                                               std::string* error) = 0;
  /// Returns true when the last reg_mr() was refused because of the memory itself (it is read-only, or
  /// belongs to a file). In this case it would not help to free other regions.
  bool refused_for_the_memory() const { return refused_for_the_memory_; }
  /// Registers in two steps (Registration). Returns null when reg_mr() is too fast to need a second thread,
  /// or when reg_mr() would refuse.
  virtual std::unique_ptr<Registration> begin_reg_mr(void*, std::size_t, std::uint32_t) { return nullptr; }
  /// Registers device memory (of a GPU, for example) that another driver has exported as `fd`; the peer's
  /// addresses for it begin at `iova`. Devices without Capabilities::dmabuf refuse, with the reason.
  virtual std::unique_ptr<MemoryRegion> reg_dmabuf_mr(int fd, std::uint64_t offset, std::size_t length,
                                                      std::uint64_t iova, std::uint32_t access,
                                                      std::string* error);
  virtual std::unique_ptr<MemoryWindow> alloc_mw() = 0;
  /// Creates a completion queue. `entries` is its initial size on devices that allocate entries in advance.
  /// The queue grows with the queue pairs that are created on it, so they never overrun it.
  virtual std::unique_ptr<CompletionQueue> create_cq(std::uint32_t entries) = 0;
  virtual std::unique_ptr<QueuePair> create_qp(CompletionQueue& cq, const QpOptions& options,
                                               std::string* error) = 0;
  /// Creates a receive queue for queue pairs on that completion queue, which can have one receive queue at a
  /// time.
  virtual std::unique_ptr<ReceiveQueue> create_receive_queue(CompletionQueue& cq, std::uint32_t receives,
                                                             std::string* error);
  /// Creates a handle for datagrams to that port or group. Returns null, with the reason in `error`, when the
  /// device refuses.
  virtual std::unique_ptr<AddressHandle> create_ah(const AhAttr& attr, std::string* error);
  /// Creates a handle to the sender of a datagram. `wc` is the datagram's completion, and `grh` contains the
  /// first kGrhBytes of its receive.
  virtual std::unique_ptr<AddressHandle> create_ah_from(const Wc& wc, const std::byte* grh,
                                                        std::string* error);
  /// Returns the GID that peers need to send datagrams to this device; all 0 when the device has no GID.
  virtual Gid gid() const { return {}; }
  /// Moves up to out.size() events to `out`, oldest first, and returns their number. The device notices
  /// events when a completion queue wakes up, or after some polls. At most 1024 events are kept; later ones
  /// are lost.
  std::size_t poll_events(std::span<AsyncEvent> out);
  virtual DeviceCounters counters() const = 0;
  /// Returns true after the device has been removed from the machine. The device then creates nothing new,
  /// its queue pairs go to ERR, and the system waits until it is closed. The removal is noticed when a
  /// completion queue wakes up, or after some polls.
  bool is_gone() const { return gone_; }
  /// Returns the reason why the last alloc_memory() or create_cq() returned null: the cause, its limit and
  /// the remedy.
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
