// Functions of libibverbs that this program puts in front of the library's own, so that a test can have a
// device do what no device does on demand: report an event, complete nothing, miss a doorbell, make a
// completion queue that is too small. Without a script each call goes straight to the library. Called by the
// tests of this folder; the plug-in finds these functions first, since a program's own come before those of
// what it loads.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace rdma_rpc::session::test {

struct Script {
  /// Reported by `context`, one by one, before what the device has to say.
  struct Report {
    ibv_context* context;
    ibv_async_event event;
  };
  std::deque<Report> reports;
  /// The next completion queue gets so many entries at most, and says that it has what was asked for. 0:
  /// none.
  int next_cq_entries = 0;
  /// This device completes nothing any more.
  ibv_context* mute = nullptr;
  /// This queue pair misses the doorbell after so many: what was posted with it is carried out at the next
  /// one.
  ibv_qp* dozes = nullptr;
  std::uint32_t doorbells_before = 0;
  struct Missed {
    ibv_send_wr wr;
    std::vector<ibv_sge> sges;
    std::vector<std::byte> inline_bytes;
    std::uint32_t old_key;  ///< of the window, if it is a bind
  };
  std::deque<Missed> missed;
  std::uint32_t doorbells_missed = 0;
  /// How long the watchdog's second is; less than one. And how many of them have begun.
  long second_ns = 999'999'999;
  std::uint32_t seconds = 0;
  /// In which of them an empty WRITE was posted to this queue pair, each time.
  std::unordered_map<const ibv_qp*, std::vector<std::uint32_t>> empty_writes;
  /// What queue pairs were told, with the mask, in order.
  struct Told {
    const ibv_qp* qp;
    ibv_qp_attr attributes;
    int mask;
  };
  std::vector<Told> told;
  /// The partition that rdma_cm names, which the device need not have. 0: its own.
  std::uint16_t pkey_index = 0;
  /// The type of service that rdma_cm's ids were told.
  std::vector<std::uint8_t> tos;
  /// A queue pair that is to send more inline is refused, or each with this errno.
  std::uint32_t inline_max = UINT32_MAX;
  int refuses_qps = 0;
  /// All queue pairs that were made since the script began, in order, and the device of each completion
  /// queue.
  std::vector<ibv_qp*> queue_pairs;
  std::vector<ibv_context*> contexts;
};

/// What libibverbs does while it lives; one at a time.
class Provider {
 public:
  Provider();
  ~Provider();
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  Script& script() { return script_; }
  void report(ibv_event_type type, ibv_context* context, ibv_qp* qp = nullptr, ibv_cq* cq = nullptr);

 private:
  Script script_;
};

}  // namespace rdma_rpc::session::test
