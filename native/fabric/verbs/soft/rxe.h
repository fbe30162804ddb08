// Works around defects of soft-RoCE's driver (driver.h has the kernel versions), by holding back requests
// that must not be on the device at once. make_workaround() makes these objects, on the device's thread.
//
// When a packet is lost or late, the driver goes back to the oldest unacknowledged request and executes all
// requests from there again. This causes two defects.
//
// First, the driver executes binds again. A window that is already bound cannot be bound again: the queue
// pair then sends nothing more, reports no error, and flushes later requests. Therefore a bind is held here
// until all packets before it are acknowledged.
//
// Second, a WRITE of several packets may be acknowledged while the driver sends it again. The driver then
// sends an additional packet of 0 bytes for this WRITE, so the following packets get numbers that are too
// high by one. A peer that has already received some of the following packets mistakes the rest for new
// packets. Such a peer executes a SEND twice, writes bytes of a WRITE to the wrong place until one packet is
// left over, and then ends the queue pair (rem_inv_req_err). Therefore nothing is posted behind such a WRITE
// until it is acknowledged.
//
// Requests that are posted behind a held request are held, too. No other driver needs this, so the copies may
// be made on the heap.
//
// The driver's requester sleeps before it announces the event for which it waits (rxe_requester():
// wait_fence, wait_psn, need_req_skb). The requester may miss the event and then sleep until the next
// doorbell, because no timer runs. When the oldest request has not moved from one second to the next, the
// doorbell is rung again.
//
// A connection keeps the path MTU with which it was made. When the interface has a smaller MTU later, the
// kernel refuses the connection's long packets, and the requester tries for ever to send the first of them
// (rxe_requester(): EAGAIN). No timer runs, because no packet is outstanding. So the queue pair is ended when
// its oldest request has not moved and the path MTU is larger than the port's.
//
// The completion of a SEND_WITH_INV has the kernel's number for the flag, which differs from the library's.
#pragma once

#include <deque>
#include <string>
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
    if (!pending_.empty()) release();
  }
  std::uint32_t invalidated_key(const ibv_wc& completion) const override;
  void failed() override { pending_.clear(); }
  void second(std::uint32_t waits_s, std::uint32_t limit_s) override;

 private:
  void release();
  std::string why_too_long();

  QueuePair& qp_;
  struct Pending {
    ibv_send_wr wr;
    std::vector<ibv_sge> sges;
    std::vector<std::byte> inline_data;
    Opcode opcode;
    bool long_write;
  };
  std::deque<Pending> pending_;  ///< the last entries of the queue pair's sends
  std::uint32_t last_packet_ = ~std::uint32_t{0}, last_long_write_ = ~std::uint32_t{0};
  std::uint32_t path_mtu_ = 0;  ///< an ibv_mtu, or 0 until why_too_long() has asked
  /// Number of empty WRITEs that second() has posted and that are not known to be complete.
  std::uint32_t rings_ = 0, behind_ring_ = 0;
};

}  // namespace rdma_rpc::fabric::verbs::soft
