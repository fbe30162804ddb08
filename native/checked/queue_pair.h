// A queue pair that checks what is posted to it before a device sees it: room, state, memory, rights and
// limits. Nothing of a batch is posted when one of its requests is wrong. Made by Device, used by the binding;
// on the JS thread. The hot path allocates nothing after the first batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checked/completion_queue.h"
#include "checked/outstanding.h"
#include "checked/refusal.h"
#include "checked/region.h"
#include "fabric/fabric.h"

namespace rdma_rpc::checked {

struct QueuePairOptions {
  fabric::QpOptions fabric;
  std::uint32_t sge_max = 1;  ///< scatter/gather entries of a send
};

class QueuePair {
 public:
  QueuePair(std::shared_ptr<CompletionQueue> cq, std::shared_ptr<Regions> regions,
            const fabric::Capabilities& capabilities, const QueuePairOptions& options,
            std::unique_ptr<fabric::QueuePair> queue_pair);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  fabric::QueuePair& on_device() { return *queue_pair_; }
  CompletionQueue& cq() { return *cq_; }
  std::uint32_t send_room() const { return sends_.room(); }
  std::uint32_t recv_room() const { return receives_.room(); }

  /// `rows` are `count` requests with room for `sges` entries each (send_record).
  Refusal post_send(std::span<const double> rows, std::size_t count, std::size_t sges);
  /// `rows` are `count` receives (recv_record).
  Refusal post_recv(std::span<const double> rows, std::size_t count);

 private:
  Refusal read_send(std::span<const double> row, std::uint32_t index);
  Refusal read_sges(std::span<const double> row, std::uint32_t index, fabric::SendWr& wr);
  Refusal read_recv(std::span<const double> row, std::uint32_t index);
  /// The region of an entry whose memory lies in it and has these rights; null, with the reason.
  std::shared_ptr<Region> region_of(const double* entry, std::uint32_t access, std::uint32_t index,
                                    fabric::Sge& sge, Refusal& why);

  std::shared_ptr<CompletionQueue> cq_;
  std::shared_ptr<Regions> regions_;
  const fabric::Capabilities& capabilities_;  ///< of the device, which cq_ keeps open
  const std::uint32_t sge_max_;
  Outstanding sends_, receives_;
  std::uint32_t send_source_, recv_source_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;

  // One batch while it is checked.
  std::vector<fabric::SendWr> batch_;
  std::vector<fabric::RecvWr> recv_batch_;
  std::vector<fabric::Sge> sge_batch_;
  std::vector<std::shared_ptr<Region>> region_batch_;
  std::vector<double> wr_ids_;
};

}  // namespace rdma_rpc::checked
