// A reliable connection. Requests that are malformed are posted as ones that fail in their turn; those posted
// after a failure end without the device. On the device's thread.
#pragma once

#include <array>
#include <vector>

#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/work_queue.h"

namespace rdma_rpc::fabric::verbs {

class QueuePair final : public fabric::QueuePair {
 public:
  QueuePair(Device& device, CompletionQueue& cq, const QpOptions& options, QpPtr qp, std::uint32_t psn);
  ~QueuePair() override;

  QpState state() const override;
  std::vector<std::byte> local_address() const override;
  std::string connect(std::span<const std::byte> remote_address) override;
  std::size_t post_send(std::span<const SendWr> requests) override;
  std::size_t post_recv(std::span<const RecvWr> requests) override;
  void to_error() override;

  // For the completion queue.
  WorkQueue& queue(bool receive) { return receive ? receives_ : sends_; }
  /// Moves what ends without the device to `out`.
  std::size_t poll_failed(std::span<Wc> out);

 private:
  static constexpr std::uint32_t kChain = 32;  ///< requests of one doorbell

  bool move_to_init();
  std::string move_to_rts(const Address& peer);
  void post_chain(std::span<const SendWr> requests);
  WcStatus check(const SendWr& wr) const;
  void convert(const SendWr& from, ibv_send_wr& to, ibv_sge* sges);

  Device& device_;
  CompletionQueue& cq_;
  QpPtr qp_;
  Address address_;
  QpState state_ = QpState::init;
  std::uint32_t place_;
  WorkQueue sends_, receives_;
  std::array<ibv_send_wr, kChain> send_chain_{};
  std::array<ibv_recv_wr, kChain> recv_chain_{};
  std::vector<ibv_sge> sges_;
};

}  // namespace rdma_rpc::fabric::verbs
