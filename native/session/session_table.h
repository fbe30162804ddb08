// The sessions of a context by number. A number is the index of a table entry and the count of sessions that
// have been there, so that a late answer of JS to a dead session cannot reach the one that took its entry. It
// has 31 bits, as it lives in Int32 words. Owned by Context, on its thread.
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
  /// The session in the entry that this number has; the rest of the number is not checked. For guesses.
  const Session* likely(std::uint32_t number) const { return at(index_of(number)); }
  Session* at(std::uint32_t index) {
    return index < entries_.size() ? entries_[index].session.get() : nullptr;
  }
  const Session* at(std::uint32_t index) const {
    return index < entries_.size() ? entries_[index].session.get() : nullptr;
  }

  std::uint32_t size() const { return size_; }
  /// Entries, with a session or without.
  std::uint32_t entries() const { return static_cast<std::uint32_t>(entries_.size()); }
  /// How many there may be before the table grows again.
  std::size_t capacity() const { return entries_.capacity(); }

  /// Makes a session. Returns null, with the reason in `error`, when it cannot be made.
  Session* open(Shared& shared, const SessionOptions& options, std::string* error);
  void close(std::uint32_t number);
  void close_all();

 private:
  struct Entry {
    std::unique_ptr<Session> session;
    std::uint32_t epoch = 0;
  };
  std::vector<Entry> entries_;
  /// Entries without a session, the one that has been free for longest first: its numbers are forgotten
  /// everywhere.
  std::deque<std::uint32_t> free_;
  std::uint32_t size_ = 0;
};

}  // namespace rdma_rpc::session
