// Implements the queue pair of shm. The segment of this queue pair receives the peer's messages; the peer's
// segment is mapped to send there. The class is defined in six files: queue_pair.cc (life and state),
// send_queue.cc (post_send), transfer.cc (READ and WRITE), receive_queue.cc (post_recv, poll),
// connect/handshake.cc (shm-fd) and memory/revocation.cc (waiting for a peer's last copy). This code runs on
// the device's thread.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/prefetch.h"
#include "fabric/shm/connect/remote_device.h"
#include "fabric/shm/device.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/queue/completion_queue.h"

namespace rdma_rpc::fabric::shm {

class QueuePair final : public fabric::QueuePair, public ControlConnectionUser {
 public:
  QueuePair(Device& device, CompletionQueue& cq, const QpOptions& options, std::uint32_t qp_num,
            std::uint32_t index, Segment segment, const Token& token);
  ~QueuePair() override;

  QpState state() const override { return state_; }
  std::vector<std::byte> local_address() const override;
  std::string connect(std::span<const std::byte> remote_address) override;
  void set_first_words(const FirstWords& words) override { words_ = words; }
  std::string error() const override { return error_; }
  std::string reach(std::uint32_t rkey, std::uint64_t addr, std::uint64_t bytes) override;
  bool may_hold_messages(std::uint64_t) const override;
  std::size_t post_send(std::span<const SendWr> requests) override;
  std::size_t post_recv(std::span<const RecvWr> requests) override;
  void expect_posts() const override;
  void to_error() override;

  /// These functions prefetch for a coming poll: first the object itself, then the memory that it points to.
  void expect_look() const { prefetch(this, kHotBytes); }
  void expect_poll() const;

  const Token& token() const { return token_; }
  CompletionQueue& cq() const { return cq_; }
  std::uint32_t index() const { return index_; }
  /// State of this queue pair in its completion queue.
  CompletionQueue::Turns turns;
  /// Determines whether the peer must announce its messages. If not, the completion queue itself looks at the
  /// ring. Messages that are already published are not announced, so the caller must call idle() afterwards.
  void rely_on_announcements(bool on) {
    own_->announce.store(on ? 1 : 0, on ? std::memory_order_seq_cst : std::memory_order_relaxed);
  }
  /// Returns true when a poll() that finds nothing must be followed by others.
  bool wants_turns() const { return awaited_.marker != 0; }
  /// shm-fd: takes a connection that a peer has made to this queue pair by a unix socket.
  void take(UniqueFd fd, const Token& from);
  /// shm-fd: Sends the peer a memory that it may reach from now on.
  void show(const FileNote& note, int fd) {
    if (control_ != nullptr && shown_) control_->send(note, fd);
  }

  /// shm-fd, once connected: reads and handles a note of the peer. Returns false when no note has arrived.
  bool hears_something() { return state_ == QpState::rts && control_ != nullptr && control_->receive_once(); }

  void on_open() override;
  void on_file(const FileNote& note, ForeignFd file) override;
  void on_taken() override;
  void on_lost(const std::string& why, bool peer_went) override;

  /// Moves up to out.size() completions to `out`.
  std::size_t poll(std::span<Wc> out);
  /// Returns true when poll() would find nothing now. The function reads shared memory with seq_cst, for
  /// CompletionQueue::arm().
  bool idle() const;
  /// Returns true when the peer's thread last ran on that CPU and is awake, or has been woken by this side.
  bool peer_wants_cpu(std::uint32_t cpu) const;

  /// Returns whether a posted receive or a bound window overlaps that range.
  bool uses(std::uint64_t addr, std::uint64_t bytes) const;
  /// Returns whether the peer is copying through this key at this moment.
  bool peer_holds(std::uint32_t key) const { return own_->in_use.load(std::memory_order_seq_cst) == key; }
  bool peer_is_dead() const;

  /// Closes the descriptor of the queue pair's segment after the peer has mapped the segment, because no
  /// process needs the descriptor from then on. Returns false when the peer may not have mapped the segment
  /// yet.
  bool close_opened_file();

 private:
  /// Bytes from the start of this object that every poll and post touches.
  static constexpr std::size_t kHotBytes = 384;
  struct Receive {
    std::uint64_t wr_id;
    std::uint64_t addr;
    std::uint32_t length;
    WcStatus status;  ///< status with which the receive is flushed
  };
  struct SendCompletion {
    std::uint64_t wr_id;
    /// Value of send_posted_ after this request. When the completion is polled, the send queue is free up to
    /// there.
    std::uint32_t posted;
    std::uint32_t bytes;
    WcStatus status;
    Opcode opcode;
    bool memory_gone;  ///< see Wc::memory_gone
  };
  struct Outcome {
    WcStatus status = WcStatus::success;
    std::uint32_t bytes = 0;
    bool memory_gone = false;
  };
  /// A copy by the peer that must end before other completions are delivered.
  struct AwaitedRelease {
    std::uint32_t marker = 0;  ///< 0 when there is no such copy
    std::uint64_t addr = 0, bytes = 0;
    std::chrono::steady_clock::time_point grace_end, next_poll;
  };

  // queue_pair.cc
  std::string check(const AddressBlob& address) const;
  std::string map_peer(const AddressBlob& address);
  std::string claim(std::byte* data, const AddressBlob& address) const;
  void use_peer(const AddressBlob& address, Mapping map, std::shared_ptr<RemoteDevice> remote);
  void enter_error(SharedState shown);
  void ring_doorbell(std::span<const SendWr> requests, bool failed = false);

  // connect/handshake.cc
  std::string start_handshake(const AddressBlob& address, const std::string& path);
  const Token& own_word() const { return words_ ? words_->own : token_; }
  const Token& peer_word() const { return words_ ? words_->peer : wanted_.qp_token; }
  void welcome(UniqueFd fd, const Token& from);
  std::string take_file(const FileNote& note, const UniqueFd& file);
  void finish_handshake();
  void stop_handshake();

  // send_queue.cc
  void prefetch_receives(std::span<const SendWr> requests);
  void execute(const SendWr& wr);
  Outcome send(const SendWr& wr);
  WcStatus bind(const SendWr& wr);
  WcStatus invalidate(const SendWr& wr);
  void complete_send(const SendWr& wr, Outcome outcome);
  WcStatus check_sges(const SendWr& wr, std::uint32_t sges_max, std::uint32_t access,
                      std::uint64_t* bytes) const;
  WcStatus find_word(const SendWr& wr, CellKind* kind, std::uint32_t* word) const;
  bool peer_has_receive();
  WcStatus peer_fault() const;
  Cell& next_cell();
  void look_for_epoch();
  void publish(CellKind kind, std::uint32_t word, const std::byte* data, std::uint32_t bytes);
  void publish_placed(CellKind kind, std::uint32_t word, std::uint32_t bytes);
  WcStatus copy_to_receive(const SendWr& wr, const PostedReceive& receive, std::uint32_t bytes);

  // transfer.cc
  Outcome transfer(const SendWr& wr, Direction direction);
  Outcome copy_checked(const SendWr& wr, Direction direction, std::uint64_t bytes);
  bool is_granted(std::uint32_t rkey) const;
  Outcome atomic(const SendWr& wr);
  WcStatus update(const SendWr& wr, std::uint64_t* before);
  WcStatus find_range(const SendWr& wr, std::uint32_t right, std::uint64_t bytes, RemoteRange* range);

  // receive_queue.cc
  std::size_t poll_sends(std::span<Wc> out);
  std::size_t poll_receives(std::span<Wc> out);
  std::size_t flush_receives(std::span<Wc> out);
  bool find_message(std::memory_order order, std::uint64_t* epoch, CellHeader* header) const;
  bool deliver(const CellHeader& header, Wc* wc);
  void fail_receive(WcStatus status);
  bool invalidate_for_peer(std::uint32_t key);

  // memory/revocation.cc
  void await_release(std::uint32_t marker, std::uint64_t addr, std::uint64_t bytes);
  bool released();
  void await_any_release();
  void wait_for_release();
  bool in_grace() const;

  // The fields that every poll and post uses, in one cache line.
  QpState state_ = QpState::init;
  bool ring_closed_ = false;          ///< no message is taken from the ring any more
  bool prefetches_receives_ = false;  ///< the last batch had a message for prefetch_receives()
  QpSegment* own_ = nullptr;
  Cell* own_cells_ = nullptr;
  std::uint32_t cell_mask_ = 0;
  std::uint32_t epoch_cells_ = 0;
  std::uint64_t cells_read_ = 0;
  std::uint64_t epoch_read_ = 0;  ///< number of cells read in the current epoch
  std::uint32_t receive_mask_ = 0;
  std::uint32_t received_ = kFirstNumber;   ///< number of receives completed
  std::uint32_t published_ = kFirstNumber;  ///< number of receives published to the peer
  std::uint32_t posted_ = kFirstNumber;     ///< published_ plus the receives posted since ERR
  std::uint32_t completions_head_ = 0, completions_tail_ = 0;

  // The peer's segment, and private copies of the values that were last read from it.
  QpSegment* peer_ = nullptr;
  PostedReceive* peer_receives_ = nullptr;
  Cell* peer_cells_ = nullptr;
  const Poller* peer_poller_ = nullptr;
  Announcements* peer_announcements_ = nullptr;
  std::uint32_t peer_index_ = 0;
  std::uint32_t peer_receive_mask_ = 0;
  std::uint32_t peer_cell_mask_ = 0;
  std::uint32_t peer_epoch_cells_ = 0;
  std::uint64_t cells_sent_ = 0;
  std::uint64_t epoch_sent_ = 0;  ///< number of cells written in the current epoch
  std::uint64_t epoch_look_ = 0;  ///< value of epoch_sent_ at which to check again for a new epoch
  std::uint32_t sent_ = kFirstNumber;
  std::uint32_t peer_posted_ = kFirstNumber;
  std::uint32_t peer_shortest_receive_ = 0;
  std::uint32_t last_rung_ = 0;
  std::uint32_t peer_qp_num_ = 0;
  std::uint32_t peer_features_ = 0;  ///< bits of SharedFeature

  std::uint32_t send_posted_ = 0, send_done_ = 0;
  std::uint32_t completion_mask_ = 0;
  /// The memory is not touched before use, so that its pages use no memory.
  std::unique_ptr<SendCompletion[]> completions_;
  std::unique_ptr<Receive[]> receives_;  ///< untouched before use, like completions_
  PostedReceive* own_receives_ = nullptr;
  std::uint32_t shortest_receive_ = ~0u;
  AwaitedRelease awaited_;

  Device& device_;
  CompletionQueue& cq_;
  const QpOptions options_;
  const std::uint32_t index_;
  std::array<std::byte, sizeof(AddressBlob)> address_;
  Segment segment_;
  std::shared_ptr<RemoteDevice> remote_;
  Mapping peer_map_;
  std::shared_ptr<const PeerPipe> peer_pipe_;

  // The following members are for shm-fd.
  const Token token_;
  std::string error_;
  std::unique_ptr<ControlConnection> control_;
  bool handshaking_ = false, shown_ = false, peer_has_taken_ = false;
  AddressBlob wanted_{};        ///< address of the peer
  ForeignFd early_connection_;  ///< a connection that arrived before connect()
  Token early_token_{};
  std::optional<FirstWords> words_;
};

}  // namespace rdma_rpc::fabric::shm
