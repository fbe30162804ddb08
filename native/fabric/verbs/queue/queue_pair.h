// Implements a queue pair, most often a reliable connection. Malformed requests of RC are posted as requests
// that fail when their turn comes. Requests that are posted after a failure end without the device. Creation
// and connecting are in queue_pair.cc, posting in posting.cc, the differences of UC and UD in unreliable.cc,
// the moves between states in states.cc, requests for the watchdog in watchdog.cc. This code runs on the
// device's thread.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/verbs/connect/connection.h"
#include "fabric/verbs/datagram/address_handle.h"
#include "fabric/verbs/datagram/group.h"
#include "fabric/verbs/queue/completion_queue.h"
#include "fabric/verbs/queue/entry_room.h"
#include "fabric/verbs/queue/receive_queue.h"
#include "fabric/verbs/queue/work_queue.h"
#include "fabric/verbs/soft/nudge.h"
#include "fabric/verbs/soft/workaround.h"

namespace rdma_rpc::fabric::verbs {

inline std::uint64_t total(std::span<const Sge> sges) {
  std::uint64_t bytes = 0;
  for (const Sge& sge : sges) bytes += sge.length;
  return bytes;
}

class QueuePair final : public fabric::QueuePair {
 public:
  /// Returns the length of the send queue to request from the device. The length includes room for internal
  /// requests if the device allows it.
  static std::uint32_t device_sends(const QpOptions& options, const Device& device);

  /// Returns the number of internal requests in addition to the user's: those of ask_for_last_packet(), and
  /// those of soft/.
  static std::uint32_t internal_sends(bool active, const Device& device);

  /// `device_cq` must have entries reserved for both queues.
  QueuePair(Device& device, CompletionQueue& cq, CompletionQueue::DeviceCq& device_cq,
            const QpOptions& options, QpPtr qp, const Address& address, std::uint64_t ring_bytes);
  ~QueuePair() override;

  QpState state() const override;
  std::vector<std::byte> local_address() const override;
  std::string connect(std::span<const std::byte> remote_address) override;
  void set_first_words(const FirstWords& words) override { words_ = words; }
  std::string error() const override { return error_; }
  std::size_t post_send(std::span<const SendWr> requests) override;
  std::size_t post_recv(std::span<const RecvWr> requests) override;
  bool may_hold_messages(std::uint64_t mark) const override { return !device_cq_.taken.has_passed(mark); }
  std::uint64_t message_mark() const override { return device_cq_.taken.mark(device_cq_.entries); }
  void to_error() override;
  std::string move_to(QpState state) override;
  std::string attach_multicast(const Gid& group) override;
  std::string detach_multicast(const Gid& group) override;

  // The following members are for the connection, and for events of the device.
  ibv_qp* get() const { return qp_.get(); }
  QpType type() const { return type_; }
  bool is_stepwise() const { return stepwise_; }
  /// Returns the time limit of an attempt to connect.
  std::uint32_t connect_timeout_ms() const { return connect_timeout_ms_; }
  /// Returns " within N ms" and the options of this limit, for the error of an attempt that took too long.
  std::string within_limit() const;
  const Address& address() const { return address_; }
  const std::optional<FirstWords>& first_words() const { return words_; }
  /// Returns all rights that the peer may get on this queue pair. The key of each request restricts them.
  unsigned remote_rights() const;
  void connected() { state_ = QpState::rts; }
  /// Goes to ERR for a reason that no completion reports. The first reason is kept.
  void fail(const std::string& why);
  /// Must be called when the device has flushed a request. If this side has not caused the flush, the
  /// device's events give the reason.
  void flushed();
  /// Must be called when the device could not execute a request, possibly because a port is down.
  void not_carried_out();
  /// Returns whether this side knows that the queue pair is in ERR.
  bool has_failed() const { return state_ == QpState::err; }
  bool is_connecting() const { return state_ == QpState::rtr; }
  void data_came();

  // The following members are for the completion queue and the device. The id of a work request consists of
  // bit 63 for a receive, the queue pair's slot, and the number of its entry.
  static std::uint32_t slot_of(std::uint64_t id) { return static_cast<std::uint32_t>(id >> 32) & 0x7fffffff; }
  static bool is_receive(std::uint64_t id) { return (id & kReceive) != 0; }
  bool is(const ibv_qp* qp) const { return qp_.get() == qp; }
  bool is_on(const ibv_cq* cq) const { return device_cq_.cq.get() == cq; }
  bool is_on(const ibv_srq* srq) const { return shared_ != nullptr && shared_->srq().get() == srq; }
  bool shares_receives() const { return shared_ != nullptr; }
  std::uint32_t tag() const { return tag_; }
  /// Records that the device takes no more shared receives for this queue pair, because it has ended.
  void takes_no_more();
  /// Must be called when completions are missing. Later completions are ignored: all outstanding requests end
  /// as flushed.
  void lose_completions(const std::string& why);
  bool has_lost_completions() const { return lost_completions_; }
  /// Number of windows whose last bind was on this queue pair and whose keys are not known to be invalid.
  mutable std::uint32_t windows_bound = 0;
  bool has_carried_out(std::uint32_t request) const { return sends_.has_succeeded(request); }
  WorkQueue& queue(bool receive) { return receive ? receives_ : sends_; }
  /// Ends the requests that get no completion. Called in ERR when the completion queue is empty. A device
  /// does not report unsignaled requests that it has executed. Without this function, requests behind them
  /// would wait for ever. The first call destroys the device's queue pair, so that the device does nothing
  /// more. The next call ends all requests without a completion as flushed. Returns true when the call has
  /// destroyed the queue pair.
  bool finish_flush();
  /// Returns whether finish_flush() or poll_failed() has work to do.
  bool is_flushing();
  /// Moves completions of requests that end without the device to `out`.
  std::size_t poll_failed(std::span<Wc> out);
  /// Ends all requests that the device has. Must be called when the device is removed.
  void lose_device(const std::string& why);
  /// Must be called each second. Fails the queue pair when nothing has completed for too long. Returns false
  /// when no request is outstanding.
  bool check_requests();
  /// Returns null when the device's driver needs no workaround.
  soft::Workaround* workaround() const { return workaround_.get(); }

  // The following members are for soft/.
  Device& device() const { return device_; }
  WorkQueue& sends() { return sends_; }
  const WorkQueue& receives() const { return receives_; }
  /// Fills in the device's form of a request, and returns the entry that remembers it.
  Entry prepare(const SendWr& wr, ibv_send_wr& to, ibv_sge* sges);
  std::uint64_t id_of(std::uint32_t number) const { return std::uint64_t{slot_} << 32 | number; }
  std::string why_not_posted(int error) const;
  /// Posts an empty WRITE after an unsignaled request. Only the completion of this WRITE shows that the
  /// packets before it are acknowledged.
  void ask_for_last_packet();
  void post_empty_write(std::uint32_t number, unsigned flags);
  /// Returns whether the device has given the queue pair room for internal requests; see internal_sends().
  bool has_room_for_internal() const {
    return device_sends_ == sends_.capacity() + internal_sends(address_.active != 0, device_);
  }

 private:
  static constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;
  static constexpr std::uint32_t kChain = 32;  ///< requests per doorbell
  /// Number of polls for which to wait for the event of the last shared receive, because some devices do not
  /// report it.
  static constexpr std::uint32_t kLooksForLast = 64;

  void has_ended();
  bool device_holds_up() const;
  static constexpr std::uint32_t kAsksMax = 2;
  int move_to_init();
  std::string why_not_init(int error) const;
  std::string step_to(QpState state);
  std::string change_drain(bool stops);
  // unreliable.cc
  std::string connect_datagrams(std::span<const std::byte> remote_address);
  WcStatus check_unreliable(const SendWr& wr, std::uint64_t bytes) const;
  std::size_t leading_good(std::span<const SendWr> requests) const;
  void refuse(const SendWr& request);
  /// These functions post the first of these requests with one doorbell. post_chain() returns their number.
  void post_drain(const SendWr& request);
  std::size_t post_chain(std::span<const SendWr> requests);
  WcStatus check(const SendWr& wr, std::uint64_t bytes) const;
  WcStatus check_bind(const SendWr::Bind& bind) const;
  void convert(const SendWr& from, ibv_send_wr& to, ibv_sge* sges);

  Device& device_;
  CompletionQueue& cq_;
  CompletionQueue::DeviceCq& device_cq_;
  const QpType type_;
  const std::uint32_t qkey_;
  const bool stepwise_;
  const std::uint32_t connect_timeout_ms_;
  QpPtr qp_;
  std::vector<std::unique_ptr<Group>> groups_;  ///< for UD
  Address address_;
  std::unique_ptr<Connection> connection_;  ///< where rdma_cm is not used, null until connect()
  std::string error_;
  std::optional<FirstWords> words_;
  QpState state_;
  bool lost_completions_ = false;
  std::uint32_t slot_;
  WorkQueue sends_, receives_;
  ReceiveQueue* const shared_;  ///< null when all receives are its own
  const std::uint32_t tag_;
  std::uint32_t looks_ = 0;
  bool takes_no_more_ = false;
  bool end_reported_ = false;  ///< with shared receives: its end has been reported, see kNoReceive
  bool settled_ = false;       ///< with shared receives: all receives that it has taken have been polled
  std::uint32_t device_sends_;
  const std::uint64_t ring_bytes_;
  const EntryRoom room_;
  std::array<ibv_send_wr, kChain + 1> send_chain_{};  ///< the last element is only pointed to
  std::array<ibv_recv_wr, kChain> recv_chain_{};
  std::vector<ibv_sge> sges_;

  std::unique_ptr<soft::Workaround> workaround_;
  std::unique_ptr<soft::Nudge> nudge_;  ///< on iWARP, for the active side
  /// The oldest request, and the number of seconds for which it has been the oldest.
  std::uint32_t oldest_ = 0, waits_s_ = 0;
};

}  // namespace rdma_rpc::fabric::verbs
