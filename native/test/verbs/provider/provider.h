// Defines functions that replace those of libibverbs, so that a test can make a device do things that no
// device does on demand: report an event, complete nothing, miss a doorbell, or create a completion queue
// that is too small. Without a script each call goes straight to the library. The plug-in finds these
// functions first, because the symbols of a program precede those of the libraries that it loads. The tests
// of this folder use this file.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace rdma_rpc::session::test {

struct Script {
  /// The events that `context` reports, one by one, before those of the device.
  struct Report {
    ibv_context* context;
    ibv_async_event event;
  };
  std::deque<Report> reports;
  /// The next completion queue gets at most this number of entries, and claims to have the requested number.
  /// 0 turns this off.
  int next_cq_entries = 0;
  /// A device that completes nothing from now on.
  ibv_context* mute = nullptr;
  /// The queue pair `dozes` misses one doorbell, after `doorbells_before` others. The requests that are
  /// posted with it are executed at the next doorbell.
  ibv_qp* dozes = nullptr;
  std::uint32_t doorbells_before = 0;
  struct Missed {
    ibv_send_wr wr;
    std::vector<ibv_sge> sges;
    std::vector<std::byte> inline_bytes;
    std::uint32_t old_key;  ///< the old key of the window, if the request is a bind
  };
  std::deque<Missed> missed;
  std::uint32_t doorbells_missed = 0;
  /// The length of the watchdog's second, which is less than a real second. The next field counts the seconds
  /// that have begun.
  long second_ns = 999'999'999;
  std::uint32_t seconds = 0;
  /// For each queue pair, the seconds in which an empty WRITE was posted to it.
  std::unordered_map<const ibv_qp*, std::vector<std::uint32_t>> empty_writes;
  /// The attributes that queue pairs were given, each with its mask, in order.
  struct Told {
    const ibv_qp* qp;
    ibv_qp_attr attributes;
    int mask;
  };
  std::vector<Told> told;
  /// The P_Key index that rdma_cm names, which the device need not have; 0 for the device's own.
  std::uint16_t pkey_index = 0;
  /// The type of service that was set on rdma_cm's ids.
  std::vector<std::uint8_t> tos;
  /// A queue pair with more inline bytes than `inline_max` is refused. With `refuses_qps`, all queue
  /// pairs are refused with that errno.
  std::uint32_t inline_max = UINT32_MAX;
  int refuses_qps = 0;
  /// All queue pairs that were created since the script began, in order, and the device of each completion
  /// queue.
  std::vector<ibv_qp*> queue_pairs;
  std::vector<ibv_context*> contexts;
};

/// Applies a script to libibverbs while this object exists. At most one object may exist at a time.
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
