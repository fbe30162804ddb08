// What soft-RoCE's driver gets wrong (driver.h has the kernel versions), and the requests that must not be
// with it at once. Made by make_workaround(), on the device's thread.
//
// When a packet is lost, or late, the driver goes back to the oldest request that is not acknowledged and
// carries out everything from there again.
//
// Binds too. A window that is bound cannot be bound: the queue pair then sends nothing more, says it is fine,
// and flushes what is posted later. So a bind waits here until all packets before it are acknowledged.
//
// A WRITE of several packets may be acknowledged while it is being sent again. When it is then sent once
// more, that is one packet of no bytes, with the number after its last; what follows gets numbers that are
// too high by one. A peer that has already had some of it takes the rest for what comes next: it carries out
// a SEND twice, puts bytes of a WRITE in the wrong place until there is one packet too many, and then ends
// the queue pair (rem_inv_req_err). So nothing goes behind such a WRITE until it is acknowledged.
//
// What is posted behind a request that waits, waits with it. Only this driver's requests are ever held, so
// the copies are made on the heap.
//
// The driver's requester goes to sleep before it says what it waits for (rxe_requester(): wait_fence,
// wait_psn, need_req_skb), so it may miss what it waits for, and then sleeps until the next doorbell; no
// timer runs. When the oldest request has not moved from one second's look to the next, it is rung again.
//
// A receive of a SEND_WITH_INV says so by the kernel's number for the flag, not by the library's.
#pragma once

#include <deque>
#include <vector>

#include "fabric/verbs/soft/workaround.h"

namespace rdma_rpc::fabric::verbs {
class QueuePair;
}

namespace rdma_rpc::fabric::verbs::soft {

class Rxe final : public Workaround {
 public:
  static constexpr std::uint32_t kRingsMax = 2;

  explicit Rxe(QueuePair& qp) : qp_(qp) {}
  std::size_t may_post(std::span<const SendWr> requests) const override;
  void hold(const SendWr& request) override;
  void amend(std::span<const SendWr> requests, std::uint32_t first, std::span<ibv_send_wr> chain) override;
  void packet_posted(std::uint32_t number) override { last_packet_ = number; }
  void completed() override {
    if (!held_.empty()) release();
  }
  std::uint32_t invalidated_key(const ibv_wc& completion) const override;
  void failed() override { held_.clear(); }
  void second(std::uint32_t waits_s, std::uint32_t limit_s) override;

 private:
  void release();

  QueuePair& qp_;
  struct Held {
    ibv_send_wr wr;
    std::vector<ibv_sge> sges;
    std::vector<std::byte> inline_data;
    Opcode opcode;
    bool long_write;
  };
  std::deque<Held> held_;  ///< the last ones of the queue pair's sends
  std::uint32_t last_packet_ = ~std::uint32_t{0}, last_long_write_ = ~std::uint32_t{0};
  /// Empty WRITEs of second() that are not known to be complete, and the number that the device got next
  /// after the last of them.
  std::uint32_t rings_ = 0, behind_ring_ = 0;
};

}  // namespace rdma_rpc::fabric::verbs::soft
