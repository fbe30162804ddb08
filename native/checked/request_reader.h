// Reads rows of JS into work requests, and checks them against the device's limits and the registered memory.
// The reader reads one batch at a time; when one row is wrong, the whole batch must be refused. A queue owns
// this object and uses it on the JS thread. Allocates nothing after the first batches.
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
};

class RequestReader {
 public:
  RequestReader(Resources resources, const fabric::Capabilities& capabilities, fabric::QpType type,
                std::uint32_t sge_max)
      : resources_(std::move(resources)), capabilities_(capabilities), type_(type), sge_max_(sge_max) {}

  /// Begins a batch of `count` requests.
  void begin(std::size_t count);
  /// Reads one row. The request of the row gets the number `number` on the fabric.
  Refusal send(std::span<const double> row, std::uint32_t index, std::uint64_t number);
  Refusal recv(std::span<const double> row, std::uint32_t index, std::uint64_t number);

  /// Returns the requests of the batch. After a refusal, they include the wrong request.
  std::span<const fabric::SendWr> sends() const { return sends_; }
  std::span<const fabric::RecvWr> receives() const { return receives_; }
  /// Returns the objects that request `index` keeps alive. The caller may move them away.
  std::span<Kept> kept(std::size_t index) {
    const std::size_t first = index == 0 ? 0 : ends_[index - 1];
    return std::span(kept_).subspan(first, ends_[index] - first);
  }
  /// This function is called when the bind of request `index` has been posted.
  void note_bind(std::size_t index) {
    for (const auto& [request, window, region] : binds_)
      if (request == index) window->bound_to(region);
  }
  /// Releases the objects that the batch keeps alive.
  void end() {
    kept_.clear();
    binds_.clear();
  }

 private:
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
  std::vector<Kept> kept_;
  std::vector<std::size_t> ends_;
  struct Bound {
    std::size_t request;
    std::shared_ptr<Window> window;
    std::shared_ptr<Region> region;
  };
  std::vector<Bound> binds_;
};

}  // namespace rdma_rpc::checked
