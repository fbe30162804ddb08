// See reserved_key.h.
#include "fabric/verbs/soft/reserved_key.h"

#include <vector>

namespace rdma_rpc::fabric::verbs::soft {
namespace {

/// Sizes of completion queues: 129 pages, one page, three pages. (The choice only makes the search faster.)
constexpr int kMost = 16384, kOnePage = 1, kSomePages = 256;
constexpr std::size_t kTriesMax = 200;

CqPtr make(ibv_context* context, int entries) {
  return CqPtr(ibv_create_cq(context, entries, nullptr, nullptr, 0));
}

}  // namespace

CqPtr cover_reserved_key(ibv_context* context) {
  std::vector<CqPtr> up_to_it;
  up_to_it.push_back(make(context, kMost));
  while (up_to_it.back() != nullptr && up_to_it.size() < kTriesMax)
    up_to_it.push_back(make(context, kOnePage));
  if (up_to_it.back() != nullptr || up_to_it.size() < 2) return nullptr;
  // The last queue is replaced by a longer one.
  up_to_it.resize(up_to_it.size() - 2);
  return make(context, kSomePages);
}

}  // namespace rdma_rpc::fabric::verbs::soft
