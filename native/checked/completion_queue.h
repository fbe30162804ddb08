// Implements a completion queue whose completions become records for JS. The completion queue knows the
// queues that complete on it. It turns the sequence number of a completion back into the number of its
// request, and releases the objects that the request kept alive. Device makes these objects on the JS thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "checked/outstanding.h"
#include "checked/records.h"
#include "fabric/fabric.h"

namespace rdma_rpc::checked {

/// Returns the bits of `wr_id` that name a source; the other bits are the sequence number of the request.
constexpr std::uint64_t source_bits(std::uint32_t source) { return std::uint64_t{source} << 32; }

class CompletionQueue {
 public:
  CompletionQueue(std::shared_ptr<fabric::Device> device, std::unique_ptr<fabric::CompletionQueue> queue)
      : device_(std::move(device)), queue_(std::move(queue)) {}

  fabric::CompletionQueue& on_device() { return *queue_; }

  /// Adds a source and returns its number. Requests on the fabric carry `source << 32 | sequence number`.
  /// Only these bits of a completion identify its request, because the other fields mean nothing after an
  /// error.
  std::uint32_t add_source(Source& requests);
  /// Removes a source, and drops its completions that have not been polled.
  void remove_source(std::uint32_t source);
  /// Drops the completions of that source that have arrived and have not been polled.
  void forget(std::uint32_t source);

  /// Writes completions into rows of `out` (records.h) and returns their number.
  std::size_t poll(std::span<double> out);
  /// Makes progress with connection attempts of its queue pairs. Completions that arrive during this work are
  /// kept for the next poll(), up to a limit. Returns false, without any progress, when the limit is reached.
  bool drive();
  /// Keeps all completions that have arrived for the next poll(). Called before a queue pair with shared
  /// receives ends. Its device then drops the completions of the queue pair, and the receives that they have
  /// used would be lost.
  void keep_arrived();

 private:
  struct Row {
    std::uint32_t source;
    std::array<double, completion_record::words> words;
  };
  static constexpr std::size_t kBatch = 32;
  static constexpr std::size_t kKeptMax = 1024;

  bool translate(const fabric::Wc& wc, double* out);
  std::size_t keep_batch();
  Source* requests_of(std::uint32_t source);
  std::size_t take_kept(std::span<double> out);

  std::shared_ptr<fabric::Device> device_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unordered_map<std::uint32_t, Source*> sources_;
  std::uint32_t last_source_ = 0, known_source_ = 0;
  Source* known_ = nullptr;  ///< the source with the number known_source_
  std::vector<Row> kept_;
  std::array<fabric::Wc, kBatch> batch_{};
};

}  // namespace rdma_rpc::checked
