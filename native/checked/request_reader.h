// Reads rows of JS into work requests, and checks them against the device's limits and the registered memory.
// The reader reads one batch at a time; when one row is wrong, the whole batch must be refused. A program that
// posts the same batch again and again pays for the checks only once, because the reader keeps the batch that
// it has read last. A queue owns this object and uses it on the JS thread. The reader allocates nothing after
// the first batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checked/address_handles.h"
#include "checked/outstanding.h"
#include "checked/refusal.h"
#include "checked/region.h"
#include "checked/windows.h"
#include "fabric/fabric.h"

namespace rdma_rpc::checked {

/// The objects that requests may refer to.
struct Resources {
  std::shared_ptr<Regions> regions;
  std::shared_ptr<AddressHandles> handles;
  std::shared_ptr<Windows> windows;

  /// A number that changes whenever a region or an address handle is closed.
  std::uint64_t removals() const { return regions->removals() + handles->removals(); }
};

class RequestReader {
 public:
  RequestReader(Resources resources, const fabric::Capabilities& capabilities, fabric::QpType type,
                std::uint32_t sge_max)
      : resources_(std::move(resources)), capabilities_(capabilities), type_(type), sge_max_(sge_max) {}

  /// Returns whether the batch is the one that was read last, and is still right. Batches with different
  /// requests have different stamps; 0 is the stamp of a batch that must always be read.
  bool has_read(std::size_t count, double stamp) const {
    return stamp != 0 && stamp == stamp_ && count == requests_.size() && removals_ == resources_.removals();
  }
  /// Read a batch of `count` requests from `rows`, which have room for `sges` entries each.
  Refusal read_sends(std::span<const double> rows, std::size_t count, std::size_t sges, double stamp);
  Refusal read_receives(std::span<const double> rows, std::size_t count, double stamp);

  /// Returns the requests of the batch. The caller gives them their numbers on the fabric.
  std::span<fabric::SendWr> sends() { return sends_; }
  std::span<fabric::RecvWr> receives() { return receives_; }
  /// Returns what the completion of request `index` reports to JS.
  const Request& posted(std::size_t index) const { return requests_[index]; }
  /// Returns the objects that request `index` must keep alive once it is posted. The returned pointers are
  /// valid until one of the objects is closed.
  std::span<const Counted* const> kept(std::size_t index) const {
    const std::size_t first = index == 0 ? 0 : ends_[index - 1];
    return std::span(kept_).subspan(first, ends_[index] - first);
  }
  /// Records that the bind of request `index` has been posted.
  void note_bind(std::size_t index) {
    for (const auto& [request, window, region] : binds_)
      if (request == index) window->bound_to(region);
  }

 private:
  void begin(std::size_t count);
  void end(double stamp);
  Refusal send(std::span<const double> row, std::uint32_t index);
  Refusal recv(std::span<const double> row, std::uint32_t index);
  Refusal entries(std::span<const double> row, std::uint32_t index, fabric::SendWr& wr);
  Refusal why_wrong(const fabric::SendWr& wr, std::uint64_t bytes, std::uint32_t index) const;
  Refusal rest(std::span<const double> row, std::uint32_t index, fabric::SendWr& wr);
  Refusal bind(std::span<const double> row, std::uint32_t index, fabric::SendWr& wr);
  /// Reads an entry whose memory lies in an open region with these rights.
  Refusal entry(const double* columns, std::uint32_t access, std::uint32_t index, fabric::Sge& sge);

  const Resources resources_;
  const fabric::Capabilities& capabilities_;
  const fabric::QpType type_;
  const std::uint32_t sge_max_;
  std::vector<fabric::SendWr> sends_;
  std::vector<fabric::RecvWr> receives_;
  std::vector<fabric::Sge> sges_;
  std::vector<Request> requests_;
  std::vector<const Counted*> kept_;
  std::vector<std::size_t> ends_;
  double stamp_ = 0;
  std::uint64_t removals_ = 0;
  struct Bound {
    std::size_t request;
    Window* window;
    Region* region;
  };
  std::vector<Bound> binds_;
};

}  // namespace rdma_rpc::checked
