// Defines the objects to which the handles of the library point. The files of this folder use them under the
// lock of nic.h.
#pragma once

#include <infiniband/verbs.h>

#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "nic/device/nic.h"

namespace rdma_rpc::nic {

struct Context : ibv_context {
  std::shared_ptr<Nic> nic;  ///< a thread of a connection may outlive the test
  std::deque<ibv_async_event> events;
};

struct Channel : ibv_comp_channel {
  std::deque<ibv_cq*> events;
};

struct Completion {
  ibv_wc wc;
  std::uint64_t polls;  ///< it is seen by this poll of its queue, and by later polls
  std::uint64_t send;   ///< the number of the request, 0 for a receive
};

struct Cq : ibv_cq {
  std::deque<Completion> completions;
  enum class Armed { no, solicited, all } armed = Armed::no;
  std::uint64_t polls = 0;
  bool overrun = false;
  unsigned unacknowledged = 0;  ///< events that ibv_get_cq_event() has returned
  void push(const ibv_wc& wc, bool solicited, std::uint64_t send = 0);
};

struct Receive {
  std::uint64_t wr_id;
  std::vector<ibv_sge> sges;
};

struct Srq : ibv_srq {
  std::deque<Receive> receives;
  std::size_t size = 0, limit = 0;  ///< the queue reports once when fewer receives than `limit` are left
};

/// A request that has to wait because the queue pair is in SQD, a link is down, or the peer has no receive.
/// Such a request has copies of the caller's data.
struct Held {
  ibv_send_wr wr;
  std::vector<ibv_sge> sges;
  std::vector<std::byte> inline_bytes;
  std::uint64_t number = 0;
};

struct Qp : ibv_qp {
  ibv_qp_cap cap{};
  ibv_qp_attr attributes{};
  bool all_signaled = false;
  std::deque<Receive> receives;
  std::deque<Held> held;
  std::vector<ibv_gid> groups;  ///< of UD
  bool going_on = false;
  std::uint64_t posted = 0, polled = 0;  ///< requests, see post_send()
  Nic& nic() const { return *static_cast<Context*>(context)->nic; }
  std::deque<Receive>& receive_queue() {
    return srq != nullptr ? static_cast<Srq*>(srq)->receives : receives;
  }
  void fail();
  /// Handles the end of the peer, of which rdma_cm would notify this side.
  void hear_good_bye();
  /// Returns whether requests have to wait for a reason other than the peer's receives.
  bool is_held_up() const;
  /// Executes the requests that were held up.
  void go_on();
  /// Executes one request, or flushes it. Returns false when it has to wait for a receive of the peer.
  bool carry_out(const ibv_send_wr& wr, std::uint64_t number);
};

struct Mr : ibv_mr {
  unsigned access;
};

struct Mw : ibv_mw {
  Qp* qp = nullptr;  ///< null when it is not bound
  Mr* mr = nullptr;
  ibv_mw_bind_info bound{};
  std::uint32_t key = 0;  ///< the queue pair or region to which it was bound
};

/// The regions and windows, by the upper 24 bits of their keys.
struct Keys {
  std::unordered_map<std::uint32_t, Mr*> regions;
  std::unordered_map<std::uint32_t, Mw*> windows;
  std::uint32_t next = 1;
};
Keys& keys();
std::unordered_map<std::uint32_t, Qp*>& queue_pairs();

/// The effect of one work request (transport.cc), which datagrams.cc also uses.
using Bytes = std::vector<std::byte>;
bool gather(const Qp& qp, const ibv_send_wr& wr, Bytes* bytes);
bool scatter(const Qp& qp, std::span<const ibv_sge> sges, const Bytes& bytes);
bool remote_ok(const Qp& peer, std::uint32_t rkey, std::uint64_t addr, std::uint64_t bytes, unsigned access);
/// Returns null when the peer is not ready and the queue pair must ask again.
std::optional<ibv_wc_status> send_to(const Qp& qp, Qp& peer, const ibv_send_wr& wr, const Bytes& bytes);
/// Executes a request of a UC or UD queue pair (datagrams.cc). Data that the peer does not accept is dropped.
ibv_wc_status send_unreliably(Qp& qp, const ibv_send_wr& wr);

/// Returns the peer if the path leads to it.
Qp* peer_of(const Qp& qp);
/// Returns null when the request has to wait for a receive of the peer.
std::optional<ibv_wc_status> execute(Qp& qp, const ibv_send_wr& wr);
ibv_wc completion(const Qp& qp, std::uint64_t wr_id, ibv_wc_status status);

void report(ibv_context* context, const ibv_async_event& event);

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);
int poll_cq(ibv_cq* cq, int entries, ibv_wc* out);
int req_notify_cq(ibv_cq* cq, int solicited_only);

}  // namespace rdma_rpc::nic
