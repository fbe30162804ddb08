// A reliable connection. Requests that are malformed are posted as ones that fail in their turn; those posted
// after a failure end without the device. Life and connection are in queue_pair.cc, posting in posting.cc,
// what the watchdog asks for in watchdog.cc. On the device's thread.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/verbs/connect/connection.h"
#include "fabric/verbs/queue/completion_queue.h"
#include "fabric/verbs/queue/receive_queue.h"
#include "fabric/verbs/queue/work_queue.h"
#include "fabric/verbs/soft/nudge.h"
#include "fabric/verbs/soft/workaround.h"

namespace rdma_rpc::fabric::verbs {

class QueuePair final : public fabric::QueuePair {
 public:
  /// How long a send queue the device is asked for: there is room for our own requests where it can have it.
  static std::uint32_t device_sends(const QpOptions& options, const Device& device);

  /// Has reserved entries for both queues in `device_cq`.
  QueuePair(Device& device, CompletionQueue& cq, CompletionQueue::DeviceCq& device_cq,
            const QpOptions& options, QpPtr qp, const Address& address);
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

  // For the connection, and for what the device tells about it.
  ibv_qp* get() const { return qp_.get(); }
  const Address& address() const { return address_; }
  const std::optional<FirstWords>& first_words() const { return words_; }
  void connected() { state_ = QpState::rts; }
  /// To ERR, for a reason that no completion tells. The first one is kept.
  void fail(const std::string& why);
  /// The device has flushed a request: if we have not asked for it, the reason is what it has reported.
  void flushed();
  /// The device could not carry out a request: a port that is down may be why.
  void not_carried_out();
  /// In ERR, as far as we know.
  bool has_failed() const { return state_ == QpState::err; }
  bool is_connecting() const { return state_ == QpState::rtr; }
  void data_came();

  // For the completion queue and the device. A work request's id: bit 63 is set for a receive, then the queue
  // pair's place, then the number of its entry.
  static std::uint32_t place_of(std::uint64_t id) {
    return static_cast<std::uint32_t>(id >> 32) & 0x7fffffff;
  }
  static bool is_receive(std::uint64_t id) { return (id & kReceive) != 0; }
  bool is(const ibv_qp* qp) const { return qp_.get() == qp; }
  bool is_on(const ibv_cq* cq) const { return device_cq_.cq.get() == cq; }
  bool is_on(const ibv_srq* srq) const { return shared_ != nullptr && shared_->srq().get() == srq; }
  bool shares_receives() const { return shared_ != nullptr; }
  std::uint32_t tag() const { return tag_; }
  /// The device takes no more of the shared receives for it.
  void takes_no_more() { takes_no_more_ = true; }
  /// Completions are missing. Those that still come count no more: all that is open ends as flushed.
  void lose_completions(const std::string& why);
  bool has_lost_completions() const { return lost_completions_; }
  WorkQueue& queue(bool receive) { return receive ? receives_ : sends_; }
  /// In ERR, and the completion queue is empty. A device says nothing of a request that it had carried out
  /// without a signal, so what came later would wait for ever: first the device's queue pair goes, and with
  /// it all that it could still do; the next time, whatever it has not completed ends as flushed.
  void finish_flush();
  /// finish_flush() or poll_failed() has something to do.
  bool is_flushing();
  /// Moves what ends without the device to `out`.
  std::size_t poll_failed(std::span<Wc> out);
  /// The device is gone: all that it has ends without it.
  void lose_device(const std::string& why);
  /// A second has passed: fails when nothing has completed for too long. False: it waits for nothing.
  bool check_requests();
  /// Null: the device's driver needs none.
  soft::Workaround* workaround() const { return workaround_.get(); }

  // For soft/.
  Device& device() const { return device_; }
  WorkQueue& sends() { return sends_; }
  const WorkQueue& receives() const { return receives_; }
  /// What the device gets for a request, and what is remembered of it.
  Entry prepare(const SendWr& wr, ibv_send_wr& to, ibv_sge* sges);
  std::uint64_t id_of(std::uint32_t number) const { return std::uint64_t{place_} << 32 | number; }
  std::string why_not_posted(int error) const;
  /// Nothing would tell that a packet without a signal is acknowledged: an empty WRITE behind it does.
  void ask_for_last_packet();
  void post_empty_write(std::uint32_t number, unsigned flags);
  /// The device has given the queue pair room for requests of our own, see internal_sends().
  bool has_room_for_internal() const {
    return device_sends_ == sends_.capacity() + internal_sends(address_.active != 0, device_);
  }

 private:
  static constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;
  static constexpr std::uint32_t kChain = 32;  ///< requests of one doorbell
  /// Not every device says that it takes no more of the shared receives: so often it is waited for.
  static constexpr std::uint32_t kLooksForLast = 64;

  bool device_holds_up() const;
  /// Our own requests beside those of the user: of ask_for_last_packet(), and of soft/.
  static constexpr std::uint32_t kAsksMax = 2;
  static std::uint32_t internal_sends(bool active, const Device& device);
  bool move_to_init();
  /// Posts the first of these with one doorbell. Returns how many.
  void post_drain(const SendWr& request);
  std::size_t post_chain(std::span<const SendWr> requests);
  WcStatus check(const SendWr& wr, std::uint64_t bytes) const;
  WcStatus check_bind(const SendWr::Bind& bind) const;
  void convert(const SendWr& from, ibv_send_wr& to, ibv_sge* sges);

  Device& device_;
  CompletionQueue& cq_;
  CompletionQueue::DeviceCq& device_cq_;
  QpPtr qp_;
  Address address_;
  std::unique_ptr<Connection> connection_;  ///< null until connect() where there is no rdma_cm
  std::string error_;
  std::optional<FirstWords> words_;
  QpState state_ = QpState::init;
  bool lost_completions_ = false;
  std::uint32_t place_;
  WorkQueue sends_, receives_;
  ReceiveQueue* const shared_;  ///< null: all receives are its own
  const std::uint32_t tag_;
  std::uint32_t looks_ = 0;
  bool takes_no_more_ = false;
  bool told_ = false;     ///< with shared receives: its end, see kNoReceive
  bool settled_ = false;  ///< with shared receives: what it has taken has been polled
  std::uint32_t device_sends_;
  std::array<ibv_send_wr, kChain + 1> send_chain_{};  ///< the last one is only pointed to
  std::array<ibv_recv_wr, kChain> recv_chain_{};
  std::vector<ibv_sge> sges_;

  std::unique_ptr<soft::Workaround> workaround_;
  std::unique_ptr<soft::Nudge> nudge_;      ///< on iWARP, of the active side
  std::uint32_t oldest_ = 0, waits_s_ = 0;  ///< the request that is the oldest one, and since when
};

}  // namespace rdma_rpc::fabric::verbs
