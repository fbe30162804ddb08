// Implements the oracle: it records every call of a test and its result, and checks the rules that must hold
// after any failure. Side calls it as calls proceed, on the test's thread. The oracle shares no code with the
// session. The rules:
//
//  - a submitted call gets exactly one last event, and a bulk submission exactly one SENT event before it or
//    in the same batch;
//  - when `processed` is no, the handler never ran; when a response arrives, the handler ran once; otherwise
//    it ran at most once;
//  - the bytes that arrive are the bytes that were sent;
//  - after the last event the call's memory stays unchanged: it is filled with a pattern and checked at the
//    end. If a handler receives this pattern, the memory was read after the call had ended;
//  - a call that is pending release (PendingRelease) gets exactly one RELEASED, after its SENT. Until then
//    the application does not get its own reply buffer back.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "memory/arena.h"
#include "session/boundary.h"

namespace rdma_rpc::session::test {

enum class Answer : std::uint8_t {
  now,    ///< in the callback for the request
  later,  ///< when the test calls Side::answer()
};

/// A call that the test wants to make. A message consists of `bytes` bytes of the pattern of its id.
struct CallSpec {
  std::size_t request_bytes = 32;
  std::size_t request_gather_entries = 1;  ///< number of gather entries of a bulk request
  bool request_in_arena = false;  ///< gather entries are in arena blocks instead of application buffers
  /// Length of the first, third ... gather entry of the request. The value is 0 when all entries have the
  /// same length.
  std::size_t short_gather_entry_bytes = 0;
  bool in_scratch = false;  ///< the short gather entries are in the scratch buffer
  std::size_t response_bytes = 32;
  std::size_t response_gather_entries = 1;
  bool response_in_arena = false;
  bool response_bulk = false;          ///< submitted as bulk, even when it is small
  std::size_t given_reply_buffer = 0;  ///< size of the caller's own block for the response, or 0
  std::uint32_t status = 0;
  Answer answer = Answer::now;
  std::uint32_t method = 7;
  std::uint32_t timeout_us = 0;
  bool part = false;               ///< submitted as part of a stream
  bool aligned = false;            ///< bulk requests and responses are aligned messages
  bool reply_buffer_only = false;  ///< a response that does not fit `given_reply_buffer` is refused
  /// The number of last bytes of a gather entry in a buffer of the application that lie on the next page; 0
  /// allows any position.
  std::uint8_t beyond_page = 0;
};

/// Returns where gather entry `index` begins in a message that is cut into `count` entries. When `index`
/// equals `count`, returns the end of the message.
inline std::size_t gather_entry_begin(std::size_t bytes, std::size_t count, std::size_t index,
                                      std::size_t short_bytes = 0) {
  const std::size_t shorts = (count + 1) / 2, longs = count / 2;
  if (index == count) return bytes;
  if (short_bytes == 0 || longs == 0 || shorts * short_bytes > bytes) return bytes * index / count;
  return (index + 1) / 2 * short_bytes + (bytes - shorts * short_bytes) * (index / 2) / longs;
}

/// The information about a call that its handler needs. The information is sent as the request's metadata.
struct Descriptor {
  std::uint64_t id;
  std::uint32_t request_bytes, response_bytes;
  std::uint32_t response_gather_entries, status;
  std::uint8_t response_in_arena, response_bulk, later, beyond_page;
  std::uint8_t aligned;
  std::uint8_t reserved[3];
};
static_assert(sizeof(Descriptor) == 32);

/// Memory of a call, which is watched after the end of the call.
struct Watched {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

struct CallRecord {
  CallSpec spec;
  std::uint32_t session = 0, slot = 0;
  int last_events = 0, began = 0, sent_events = 0, released_events = 0;
  std::int32_t held = 0;  ///< boundary::PendingRelease bits of its last event
  std::int32_t token = 0;
  boundary::EvKind kind{};
  boundary::Reason reason{};
  boundary::Processed processed{};
  std::uint32_t status = 0;
  std::size_t answer_bytes = 0;
  /// The word ev::refused_bytes of the response.
  std::uint32_t refused_bytes = 0;
  memory::BlockId answer_block = memory::kNoBlock, given_block = memory::kNoBlock;
  std::vector<Watched> memory;  ///< memory of the request and of the given reply buffer
  bool ended() const { return last_events != 0; }
  bool holds() const { return held != 0 && released_events == 0; }
  bool answered() const { return ended() && kind == boundary::EvKind::settled; }
};

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);
bool is_pattern(std::span<const std::byte> bytes, std::uint64_t seed);
/// Returns the seed of a response's pattern.
constexpr std::uint64_t answer_of(std::uint64_t id) { return id ^ 0x5bd1e995; }

class Ledger {
 public:
  std::uint64_t add(const CallSpec& spec) {
    calls_.emplace_back().spec = spec;
    return calls_.size();
  }
  CallRecord& at(std::uint64_t id) { return calls_[id - 1]; }
  bool known(std::uint64_t id) const { return id != 0 && id <= calls_.size(); }
  std::size_t size() const { return calls_.size(); }
  std::size_t open() const;

  /// Watches memory whose call has ended: from now on the memory must not change.
  void watch(const Watched& memory);
  void unwatch(const std::byte* data);
  void violation(std::string text) { violations_.push_back(std::move(text)); }

  /// Returns all violations so far. With `final`, calls that have not ended are also violations.
  std::vector<std::string> violations(bool final = true);

 private:
  std::deque<CallRecord> calls_;
  std::list<Watched> watched_;
  std::vector<std::string> violations_;
};

}  // namespace rdma_rpc::session::test
