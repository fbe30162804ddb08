// What the handles of the library point to. Used by transport.cc and library.cc, under the lock of nic.h.
#pragma once

#include <infiniband/verbs.h>

#include <deque>
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

struct Cq : ibv_cq {
  std::deque<ibv_wc> completions;
  enum class Armed { no, solicited, all } armed = Armed::no;
  void push(const ibv_wc& wc, bool solicited);
};

struct Receive {
  std::uint64_t wr_id;
  std::vector<ibv_sge> sges;
};

struct Srq : ibv_srq {
  std::deque<Receive> receives;
  std::size_t size = 0, limit = 0;  ///< with fewer receives than the limit it reports that, once
};

/// A request that a queue pair in SQD keeps, with all that belongs to the caller.
struct Held {
  ibv_send_wr wr;
  std::vector<ibv_sge> sges;
  std::vector<std::byte> inline_bytes;
};

struct Qp : ibv_qp {
  ibv_qp_cap cap{};
  ibv_qp_attr attributes{};
  bool all_signaled = false;
  std::deque<Receive> receives;
  std::deque<Held> held;
  Nic& nic() const { return *static_cast<Context*>(context)->nic; }
  std::deque<Receive>& receive_queue() {
    return srq != nullptr ? static_cast<Srq*>(srq)->receives : receives;
  }
  void fail();
  void go_on();
};

struct Mr : ibv_mr {
  unsigned access;
};

struct Mw : ibv_mw {
  Qp* qp = nullptr;  ///< null when it is not bound
  Mr* mr = nullptr;
  ibv_mw_bind_info bound{};
  std::uint32_t key = 0;  ///< the one that it was bound to
};

/// A key's upper 24 bits are the index here.
struct Keys {
  std::unordered_map<std::uint32_t, Mr*> regions;
  std::unordered_map<std::uint32_t, Mw*> windows;
  std::uint32_t next = 1;
};
Keys& keys();
std::unordered_map<std::uint32_t, Qp*>& queue_pairs();

void report(ibv_context* context, const ibv_async_event& event);

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);
int poll_cq(ibv_cq* cq, int entries, ibv_wc* out);
int req_notify_cq(ibv_cq* cq, int solicited_only);

}  // namespace rdma_rpc::nic
