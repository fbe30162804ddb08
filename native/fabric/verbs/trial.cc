// See trial.h.
#include "fabric/verbs/trial.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "fabric/verbs/connect/path.h"
#include "fabric/verbs/probe.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::uint32_t kRequests = 16, kPageBytes = 4096;
constexpr std::chrono::seconds kLimit{1};

/// Contains both ends of a connection from a device to itself. The order of the members makes C++ destroy
/// them in the order that devices need: windows before queue pairs, and queue pairs before the completion
/// queue.
class Pair {
 public:
  Pair(ibv_pd* pd, const Port& port, std::uint32_t inline_bytes) {
    cq_.reset(ibv_create_cq(pd->context, 4 * kRequests, nullptr, nullptr, 0));
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
    mr_.reset(ibv_reg_mr(pd, page_.data(), page_.size(), kAccess));
    // A device without windows may refuse IBV_ACCESS_MW_BIND.
    if (mr_ == nullptr) mr_.reset(ibv_reg_mr(pd, page_.data(), page_.size(), IBV_ACCESS_LOCAL_WRITE));
    error_ = errno;
    if (cq_ == nullptr || mr_ == nullptr) return;
    for (QpPtr* qp : {&sender_, &owner_}) {
      ibv_qp_init_attr init = reliable(cq_.get(), kRequests, kRequests, 1, inline_bytes);
      qp->reset(ibv_create_qp(pd, &init));
      error_ = errno;
      if (*qp == nullptr) return;
    }
    error_ = connect(*sender_, *owner_, port);
    if (error_ == 0) error_ = connect(*owner_, *sender_, port);
    connected_ = error_ == 0;
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  bool connected() const { return connected_; }
  std::string why_not_connected() const { return std::strerror(error_); }
  std::byte* page() { return page_.data(); }

  bool receive(std::size_t offset, std::uint32_t bytes) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(page_.data() + offset), bytes, mr_->lkey};
    ibv_recv_wr wr{kReceive, nullptr, &sge, 1}, *bad = nullptr;
    return ibv_post_recv(owner_.get(), &wr, &bad) == 0;
  }
  /// Sends bytes that are not registered.
  std::string send_inline(const std::byte* data, std::uint32_t bytes) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(data), bytes, 0};
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    return post(*sender_, wr, 2);
  }
  /// Binds the window to the page, on the queue pair of the owner.
  std::string bind(ibv_mw* mw) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = {mr_.get(), reinterpret_cast<std::uintptr_t>(page_.data()), page_.size(),
                            IBV_ACCESS_REMOTE_WRITE};
    key_ = wr.bind_mw.rkey;
    std::string why = post(*owner_, wr, 1);
    mw->rkey = key_;
    return why;
  }
  /// Writes from one position in the page to another, with the key of the window.
  std::string write(std::size_t from, std::size_t to, std::uint32_t bytes) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(page_.data() + from), bytes, mr_->lkey};
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(page_.data() + to);
    wr.wr.rdma.rkey = key_;
    return post(*sender_, wr, 1);
  }
  std::string invalidate() {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.invalidate_rkey = key_;
    return post(*sender_, wr, 2);
  }

 private:
  static constexpr std::uint64_t kReceive = 1;

  /// Returns the errno with which the device refuses, or 0.
  static int connect(ibv_qp& qp, const ibv_qp& peer, const Port& port) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = port.number;
    attr.pkey_index = port.pkey_index;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    int error =
        ibv_modify_qp(&qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error != 0) return error;
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = static_cast<ibv_mtu>(port.address.mtu);
    attr.dest_qp_num = peer.qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr = path_to(port, port.address);
    error = ibv_modify_qp(&qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error != 0) return error;
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 6;
    attr.max_rd_atomic = 1;
    return ibv_modify_qp(&qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
  }

  /// Posts the request and waits for its completions. Returns "", or what went wrong.
  std::string post(ibv_qp& qp, ibv_send_wr wr, int completions) {
    wr.send_flags |= IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(&qp, &wr, &bad); error != 0) return std::strerror(error);
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (completions > 0) {
      ibv_wc wc{};
      const int got = ibv_poll_cq(cq_.get(), 1, &wc);
      if (got < 0) return "its completion queue has failed";
      if (got > 0 && wc.status != IBV_WC_SUCCESS) return ibv_wc_status_str(wc.status);
      completions -= got;
      if (got == 0 && std::chrono::steady_clock::now() > end) return "nothing completes";
      const timespec moment{0, 10'000};
      if (got == 0) ::nanosleep(&moment, nullptr);
    }
    return "";
  }

  alignas(kPageBytes) std::array<std::byte, kPageBytes> page_{};
  CqPtr cq_;
  MrPtr mr_;
  QpPtr sender_, owner_;
  std::uint32_t key_ = 0;
  int error_ = 0;
  bool connected_ = false;
};

std::string try_inline(Pair& pair, std::uint32_t bytes) {
  std::vector<std::byte> sent(bytes);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i + 1);
  if (!pair.receive(0, bytes)) return "it takes no receive";
  std::string why = pair.send_inline(sent.data(), bytes);
  if (why.empty() && std::memcmp(pair.page(), sent.data(), bytes) != 0) why = "other bytes arrive";
  return why;
}

std::string try_windows(Pair& pair, ibv_pd* pd) {
  errno = 0;
  const MwPtr window(ibv_alloc_mw(pd, IBV_MW_TYPE_2));
  if (window == nullptr) return "it allocates none";
  constexpr std::uint32_t kBytes = 64;
  std::memset(pair.page(), 0x5a, kBytes);
  if (const std::string why = pair.bind(window.get()); !why.empty()) return "a bind fails: " + why;
  if (const std::string why = pair.write(0, kPageBytes / 2, kBytes); !why.empty())
    return "a WRITE to one fails: " + why;
  if (std::memcmp(pair.page(), pair.page() + kPageBytes / 2, kBytes) != 0)
    return "a WRITE to one does not arrive";
  if (!pair.receive(0, kBytes)) return "it takes no receive";
  if (const std::string why = pair.invalidate(); !why.empty())
    return "a SEND that invalidates one fails: " + why;
  return "";
}

}  // namespace

Trial try_out(ibv_pd* pd, const Port& port, const Promised& promised) {
  Trial trial;
  const auto pair = std::make_unique<Pair>(pd, port, promised.inline_bytes);
  if (!pair->connected()) {
    trial.why_not_tried = "it cannot be connected to itself: " + pair->why_not_connected();
    return trial;
  }
  if (promised.inline_bytes > 0) trial.why_no_inline = try_inline(*pair, promised.inline_bytes);
  // A failed test breaks the connection, so the test of windows needs another pair after that.
  if (!promised.windows) return trial;
  if (trial.why_no_inline.empty()) {
    trial.why_no_windows = try_windows(*pair, pd);
  } else if (const auto another = std::make_unique<Pair>(pd, port, 0); another->connected()) {
    trial.why_no_windows = try_windows(*another, pd);
  }
  return trial;
}

}  // namespace rdma_rpc::fabric::verbs
