// Implements a queue pair of the simulated fabric: its two queues, its states and its connection.
// execution.cc executes single requests, unreliable.cc executes those of UC and UD, and states.cc moves
// between the states that users ask for. This code runs on the world's thread.
//
// Meaning of the send queue's indices (software/send_indices.h). Requests from `retired` to `started` have
// been executed, or are READs that wait for the moment of their copy. Requests from `started` on wait for
// their time, for the peer, or for READs.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "fabric/sim/completion_queue.h"
#include "fabric/sim/device.h"
#include "fabric/sim/packets.h"
#include "fabric/sim/receives.h"
#include "fabric/software/send_indices.h"

namespace rdma_rpc::fabric {

class SimQueuePair final : public QueuePair {
 public:
  SimQueuePair(SimDevice& device, SimCompletionQueue& cq, const QpOptions& options);
  ~SimQueuePair() override;

  QpState state() const override { return state_; }
  std::vector<std::byte> local_address() const override;
  std::string connect(std::span<const std::byte> remote_address) override;
  std::size_t post_send(std::span<const SendWr> requests) override;
  std::size_t post_recv(std::span<const RecvWr> requests) override;
  bool revoke(std::uint32_t rkey) override;
  bool abandon_reads(std::uint64_t addr, std::uint64_t bytes) override;
  void to_error() override;
  std::string move_to(QpState state) override;
  std::string attach_multicast(const Gid& group) override;
  std::string detach_multicast(const Gid& group) override;
  std::string error() const override { return error_; }

  /// Does all work that is due now. Only the world calls this function.
  void progress();
  bool is_ready = false;  // is in the world's ready list

  // The completion queue calls this function.
  void polled(bool receive, std::uint64_t send_end, std::uint32_t count);
  /// Returns true when poll() would now conclude a connection attempt, with success or failure.
  bool can_conclude() const;
  void conclude();

  // This function implements the hooks of SimWorld.
  const SimQueuePair* peer() const { return peer_; }
  /// Returns the numbers of the queue pairs whose peer is this one. The set is ordered, so that they are
  /// woken in the same order in each run with the same seed.
  const std::set<std::uint32_t>& reached_by() const { return reached_by_; }
  const SimDevice& device() const { return device_; }
  void kill(WcStatus seen_by_peers);
  void delay(std::uint64_t extra_ns) { extra_delay_ns_ = extra_ns; }
  void hold_completions() { holding_ = true; }
  /// Completions are in one ring, in the order of the world's events.
  bool may_hold_messages(std::uint64_t mark) const override;
  std::uint64_t message_mark() const override { return cq_.mark(); }
  void release_completions();

 private:
  enum class Phase : std::uint8_t { queued, reading, done };
  struct SendSlot {
    SendWr wr;  // `sges` points into sge_room_
    std::uint64_t bytes = 0;
    // While the request is queued: the earliest start, which also comes after the requests ahead of this one.
    // While it is reading: the time when the READ is executed.
    std::uint64_t due_at = 0;
    std::uint64_t done_at = 0;  // when done: earliest time to report the request
    software::BindRequest bind{};
    WcStatus status = WcStatus::success;  // while queued: the error that was found when it was posted
    Phase phase = Phase::queued;
    bool memory_gone = false;  // rdma_read, see Wc::memory_gone
    bool abandoned = false;    // rdma_read: its bytes are discarded
    bool updating = false;     // atomic in scheduled mode: it has read `before`
    std::uint64_t before = 0;
  };

  // states.cc
  void enter_sqe();
  void flush_sends();
  void note_drained();
  void reset();

  // queue_pair.cc
  void stage(SendSlot& slot, const SendWr& wr);
  bool start_some();
  bool carry_out_reads(bool early = false);
  void retire();
  void enter_error();
  void finish_updates();
  void flush();
  void drop_bind(const SendSlot& slot);
  bool must_wait(const SendSlot& slot) const;
  bool must_wait_for_peer() const;
  void finish(SendSlot& slot, WcStatus status);
  void complete_send(const SendSlot& slot, WcStatus status, std::uint64_t end);
  void complete_receive(const Wc& wc, bool solicited = false);
  void push(const Cqe& cqe);
  SendSlot& send_slot(std::uint64_t index) { return send_slots_[sends_.slot(index)]; }

  // execution.cc
  WcStatus peer_fault() const;
  bool peer_still_lands() const;
  WcStatus begin(SendSlot& slot);
  WcStatus begin_read(SendSlot& slot);
  WcStatus send_to_peer(const SendSlot& slot);
  WcStatus write_to_peer(const SendSlot& slot);
  WcStatus read_from_peer(SendSlot& slot);
  bool must_wait_to_update(SendSlot& slot);
  std::uint64_t update_peer(const SendSlot& slot);
  WcStatus invalidate_window(std::uint32_t key);
  bool gather_ok(const SendSlot& slot) const;
  void gather(const SendSlot& slot, std::uint64_t to) const;
  WcStatus fail_receive(WcStatus status);
  WcStatus found_by_the_peer(WcStatus status);
  bool read_ok(const SendSlot& slot) const;

  // unreliable.cc
  WcStatus dispatch(const SendSlot& slot);
  void transmit(SimQueuePair& to, const std::shared_ptr<const SimMessage>& message);
  bool overflows(const SimMessage& message) const;
  void take_packets();
  void take_datagram(const SimMessage& message);
  void take_part(const SimPacket& packet);
  bool write_part(const SimPacket& packet);
  bool can_receive(std::size_t bytes);
  void complete_message(const SimMessage& message, std::size_t bytes);

  SimDevice& device_;
  World& world_;
  SimCompletionQueue& cq_;
  const QpOptions options_;
  const std::uint32_t sge_max_;

  QpState state_;
  std::uint64_t connects_at_ = 0;  // in RTR: earliest time when the attempt is concluded
  std::string error_;
  std::set<std::uint32_t> reached_by_;
  SimQueuePair* peer_ = nullptr;                     // from connect() until the peer is destroyed
  WcStatus peer_gone_as_ = WcStatus::rem_abort_err;  // status of requests after the peer has been destroyed
  // Status of the peers' requests after this queue pair has been killed.
  WcStatus seen_by_peers_ = WcStatus::rem_abort_err;
  bool killed_ = false;
  bool end_reported_ = false;   // with shared receives: its end has been reported, see kNoReceive
  bool failed_ = false;         // a request has failed, so no other request is started
  std::uint64_t flush_at_ = 0;  // in ERR: no byte is copied after this time

  software::SendIndices sends_;
  std::vector<SendSlot> send_slots_;
  std::vector<Sge> sge_room_;
  std::vector<std::byte> inline_room_;
  std::uint64_t last_read_ns_ = 0, extra_delay_ns_ = 0;
  std::uint32_t reads_waiting_ = 0;

  software::ReceiveRing own_receives_;
  software::ReceiveRing& receives_;  // own or shared receives
  // Number of receives taken from receives_, and the number of these that have not been polled yet.
  std::uint64_t received_ = 0, unpolled_ = 0;

  std::deque<SimPacket> inbox_;  // packets of UC and UD, by time of arrival
  SimAssembly assembly_;         // for UC
  std::vector<Gid> groups_;      // for UD
  bool tells_drained_ = false;   // in SQD: true until the event sq_drained

  bool holding_ = false;
  std::vector<Cqe> held_;
};

}  // namespace rdma_rpc::fabric
