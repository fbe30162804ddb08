// The oracle: what every call of a test was, what became of it, and the rules that must hold whatever went
// wrong. Written by Side as calls go on, on the test's thread; shares no code with the session.
//
//  - a submitted call gets exactly one last event, a bulk submission exactly one SENT event, before or with
//  it;
//  - processed: no  ⇒ the handler never ran; an answer ⇒ it ran once; otherwise at most once;
//  - the bytes that arrive are the bytes that were sent;
//  - after the last event no byte of the call's memory changes: it is filled with a pattern and looked at
//  again at the end. A handler that gets that pattern has got bytes that its caller wrote after the end;
//  - a call that is pending release (PendingRelease) gets exactly one RELEASED, its SENT before that, and its own reply buffer is
//    taken away until then.
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
  now,    ///< in the callback that brought the request
  later,  ///< when the test says so, see Side::answer()
};

/// One call as the test wants it. A message is `bytes` bytes of the pattern of its id.
struct CallSpec {
  std::size_t request_bytes = 32;
  std::size_t request_gather_entries = 1;  ///< of a bulk request
  bool request_in_arena = false;  ///< gather entries in arena blocks, else in buffers of the application
  /// Of every other gather entry of the request, from the first on; 0: all have the same length.
  std::size_t short_gather_entry_bytes = 0;
  bool in_scratch = false;  ///< the short ones
  std::size_t response_bytes = 32;
  std::size_t response_gather_entries = 1;
  bool response_in_arena = false;
  bool response_bulk = false;          ///< submitted as bulk, however small
  std::size_t given_reply_buffer = 0;  ///< bytes of the caller's own block for the answer, 0: none
  std::uint32_t status = 0;
  Answer answer = Answer::now;
  std::uint32_t method = 7;
  std::uint32_t timeout_us = 0;
  bool part = false;               ///< submitted as part of a stream
  bool aligned = false;            ///< what goes as bulk goes as an aligned message, request and response
  bool reply_buffer_only = false;  ///< what does not fit `given_reply_buffer` is refused
  /// Of each gather entry in a buffer of the application, request and response: so many bytes, its last, lie
  /// on another page than those before them. 0: wherever.
  std::uint8_t beyond_page = 0;
};

/// Where gather entry `index` of a message begins that is cut into `count`; the end of it for `count`.
inline std::size_t gather_entry_begin(std::size_t bytes, std::size_t count, std::size_t index,
                                      std::size_t short_bytes = 0) {
  const std::size_t shorts = (count + 1) / 2, longs = count / 2;
  if (index == count) return bytes;
  if (short_bytes == 0 || longs == 0 || shorts * short_bytes > bytes) return bytes * index / count;
  return (index + 1) / 2 * short_bytes + (bytes - shorts * short_bytes) * (index / 2) / longs;
}

/// What the handler must know of a call: it travels as the request's metadata.
struct Descriptor {
  std::uint64_t id;
  std::uint32_t request_bytes, response_bytes;
  std::uint32_t response_gather_entries, status;
  std::uint8_t response_in_arena, response_bulk, later, beyond_page;
  std::uint8_t aligned;
  std::uint8_t reserved[3];
};
static_assert(sizeof(Descriptor) == 32);

/// Memory of a call, watched after its end.
struct Watched {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

struct CallRecord {
  CallSpec spec;
  std::uint32_t session = 0, slot = 0;
  int last_events = 0, began = 0, sent_events = 0, released_events = 0;
  std::int32_t held = 0;  ///< boundary::PendingRelease of its last event
  std::int32_t token = 0;
  boundary::EvKind kind{};
  boundary::Reason reason{};
  boundary::Processed processed{};
  std::uint32_t status = 0;
  std::size_t answer_bytes = 0;
  /// what the answer took when the given reply buffer was too small for it
  std::uint32_t beyond_reply_buffer = 0;
  memory::BlockId answer_block = memory::kNoBlock, given_block = memory::kNoBlock;
  std::vector<Watched> memory;  ///< of the request and the given reply buffer
  bool ended() const { return last_events != 0; }
  bool holds() const { return held != 0 && released_events == 0; }
  bool answered() const { return ended() && kind == boundary::EvKind::settled; }
};

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);
bool is_pattern(std::span<const std::byte> bytes, std::uint64_t seed);
/// The seed of a response's pattern.
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

  /// The memory's call has ended: nobody may write there any more.
  void watch(const Watched& memory);
  void unwatch(const std::byte* data);
  void violation(std::string text) { violations_.push_back(std::move(text)); }

  /// Everything that broke a rule so far; with `final`, calls that have not ended count too.
  std::vector<std::string> violations(bool final = true);

 private:
  std::deque<CallRecord> calls_;
  std::list<Watched> watched_;
  std::vector<std::string> violations_;
};

}  // namespace rdma_rpc::session::test
