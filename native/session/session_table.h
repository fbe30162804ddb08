// Keeps the sessions of a context by number. A session's number consists of the index of its table entry and
// a count of the sessions that the entry has had. Therefore a late answer of JS to a dead session cannot
// reach the session that took its entry. A number has 31 bits, because it is stored in Int32 words. Context
// owns this object and uses it on the context's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "session/limits.h"
#include "session/session.h"

namespace rdma_rpc::session {

class SessionTable {
 public:
  static constexpr std::uint32_t index_of(std::uint32_t number) { return number & (kSessionsMax - 1); }

  Session* find(std::uint32_t number) {
    Session* session = at(index_of(number));
    return session != nullptr && session->number() == number ? session : nullptr;
  }
  /// Returns the session in the table entry of this number. Does not check the rest of the number, so the
  /// result is only a guess, for prefetching.
  const Session* likely(std::uint32_t number) const { return at(index_of(number)); }
  Session* at(std::uint32_t index) {
    return index < entries_.size() ? entries_[index].session.get() : nullptr;
  }
  const Session* at(std::uint32_t index) const {
    return index < entries_.size() ? entries_[index].session.get() : nullptr;
  }

  std::uint32_t size() const { return size_; }
  /// Returns the number of entries, including those without a session.
  std::uint32_t entries() const { return static_cast<std::uint32_t>(entries_.size()); }
  /// Returns the number of entries that fit before the table grows again.
  std::size_t capacity() const { return entries_.capacity(); }

  /// Creates a session. Returns null, with the reason in `error`, when it cannot be created.
  Session* open(Shared& shared, const SessionOptions& options, std::string* error);
  void close(std::uint32_t number);
  void close_all();

 private:
  struct Entry {
    std::unique_ptr<Session> session;
    std::uint32_t epoch = 0;
  };
  std::vector<Entry> entries_;
  /// Entries without a session. The entry that has been free for longest comes first, because its numbers are
  /// least likely to be still in use.
  std::deque<std::uint32_t> free_;
  std::uint32_t size_ = 0;
};

}  // namespace rdma_rpc::session
