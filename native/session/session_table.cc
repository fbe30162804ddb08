// See session_table.h.
#include "session/session_table.h"

namespace rdma_rpc::session {

namespace {
constexpr std::uint32_t kIndexBits = 14;
static_assert(kSessionsMax == 1u << kIndexBits);
constexpr std::uint32_t kEpochMask = (1u << (31 - kIndexBits)) - 1;
}  // namespace

Session* SessionTable::open(Shared& shared, const SessionOptions& options, std::string* error) {
  if (free_.empty()) {
    if (entries() == kSessionsMax) {
      *error = "a context has at most " + std::to_string(kSessionsMax) + " sessions";
      return nullptr;
    }
    free_.push_back(entries());
    entries_.emplace_back();
  }
  const std::uint32_t index = free_.front();
  Entry& entry = entries_[index];
  entry.epoch = (entry.epoch + 1) & kEpochMask;
  if ((entry.epoch << kIndexBits | index) == kAllSessions) entry.epoch = 0;
  entry.session = Session::open(shared, entry.epoch << kIndexBits | index, options, error);
  if (entry.session == nullptr) return nullptr;
  free_.pop_front();
  ++size_;
  return entry.session.get();
}

void SessionTable::close(std::uint32_t number) {
  const std::uint32_t index = index_of(number);
  entries_[index].session.reset();
  free_.push_back(index);
  --size_;
}

void SessionTable::close_all() {
  for (Entry& entry : entries_) entry.session.reset();
  size_ = 0;
}

}  // namespace rdma_rpc::session
