// Implements a queue pair that checks its requests before a device gets them: room, state, memory, rights and
// limits. When one request of a batch is wrong, the whole batch is refused. Device makes these objects, and
// the binding uses them, on the JS thread. The hot path allocates nothing after the first batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "checked/completion_queue.h"
#include "checked/outstanding.h"
#include "checked/refusal.h"
#include "checked/request_reader.h"
#include "checked/shared_receives.h"
#include "fabric/fabric.h"

namespace rdma_rpc::checked {

struct QueuePairOptions {
  fabric::QpOptions fabric;
  std::uint32_t sge_max = 1;  ///< limit of scatter/gather entries of a send
  std::shared_ptr<SharedReceives> shared_receives = {};
};

class QueuePair {
 public:
  QueuePair(std::shared_ptr<CompletionQueue> cq, const Resources& resources,
            const fabric::Capabilities& capabilities, const QueuePairOptions& options,
            std::unique_ptr<fabric::QueuePair> queue_pair);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  fabric::QueuePair& on_device() { return *queue_pair_; }
  std::uint32_t send_room() const { return sends_.room(); }
  std::uint32_t recv_room() const { return shared_ == nullptr ? receives_.room() : 0; }

  /// Posts `count` requests. `rows` has a row for each request, with room for `sges` entries (send_record).
  /// For `stamp` see RequestReader::has_read().
  Refusal post_send(std::span<const double> rows, std::size_t count, std::size_t sges, double stamp);
  /// Posts `count` receives. `rows` has a row for each (recv_record).
  Refusal post_recv(std::span<const double> rows, std::size_t count, double stamp);
  /// See fabric::QueuePair::move_to().
  Refusal move_to(fabric::QpState state);

 private:
  Refusal why_not_sending() const;

  std::shared_ptr<CompletionQueue> cq_;
  std::shared_ptr<SharedReceives> shared_;  ///< null when the queue pair has receives of its own
  RequestReader send_reader_, recv_reader_;
  Outstanding sends_, receives_;
  std::uint32_t send_source_, recv_source_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

}  // namespace rdma_rpc::checked
