// Keeps responses whose calls have ended but whose last work request has not completed. The memory that their
// WRITEs read is kept until then. ServerEndpoint owns this object and uses it on the context's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "session/server/server_call.h"

namespace rdma_rpc::session {

class FinishingResponses {
 public:
  /// Keeps the response. Returns its index for take().
  std::uint32_t keep(std::unique_ptr<ServerBulk> response) {
    std::uint32_t index = 0;
    while (index < kept_.size() && kept_[index] != nullptr) ++index;
    if (index == kept_.size()) kept_.emplace_back();
    kept_[index] = std::move(response);
    return index;
  }
  std::unique_ptr<ServerBulk> take(std::uint32_t index) { return std::move(kept_[index]); }
  bool any() const {
    return std::any_of(kept_.begin(), kept_.end(), [](const auto& response) { return response != nullptr; });
  }
  /// Calls `f(response)` for each response, then destroys it.
  template <class F>
  void clear(F&& f) {
    for (auto& response : kept_) {
      if (response != nullptr) f(*response);
      response.reset();
    }
  }

 private:
  std::vector<std::unique_ptr<ServerBulk>> kept_;
};

}  // namespace rdma_rpc::session
