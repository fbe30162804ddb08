// See ledger.h.
#include "session/sides/ledger.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace rdma_rpc::session::test {

using boundary::EvKind;
using boundary::Processed;

namespace {
constexpr std::byte kEnded{0xa5};
constexpr std::size_t kRow = 256;

/// The table contains the multiples of 7 modulo 256, twice. Because 7 is odd, every row of a pattern occurs
/// in this table.
constexpr auto kSevens = [] {
  std::array<std::byte, 2 * kRow> sevens{};
  for (std::size_t i = 0; i < sevens.size(); ++i) sevens[i] = static_cast<std::byte>(i * 7);
  return sevens;
}();

/// Byte i of a pattern is seed * 131 + i * 7 + (i / 256) * 13 + 1. A row is 256 bytes of the pattern.
/// Patterns are created in rows, which takes little time in a sanitized build. Creating them byte by byte
/// took a third of the tests' time.
const std::byte* row_of(std::uint64_t seed, std::size_t row) {
  constexpr std::size_t kInverse = 183;  // the inverse of 7 modulo 256
  return kSevens.data() + (seed * 131 + row * 13 + 1) * kInverse % kRow;
}

/// Calls `each` for each row with its expected bytes. Returns false as soon as `each` returns false.
template <typename Bytes, typename Each>
bool for_rows(std::span<Bytes> bytes, std::uint64_t seed, const Each& each) {
  for (std::size_t row = 0; row * kRow < bytes.size(); ++row) {
    const std::size_t from = row * kRow;
    const std::size_t count = std::min(kRow, bytes.size() - from);
    if (!each(bytes.data() + from, row_of(seed, row), count)) return false;
  }
  return true;
}
}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  for_rows(bytes, seed, [](std::byte* to, const std::byte* from, std::size_t count) {
    std::memcpy(to, from, count);
    return true;
  });
}

bool is_pattern(std::span<const std::byte> bytes, std::uint64_t seed) {
  return for_rows(bytes, seed, [](const std::byte* got, const std::byte* wanted, std::size_t count) {
    return std::memcmp(got, wanted, count) == 0;
  });
}

std::size_t Ledger::open() const {
  return static_cast<std::size_t>(
      std::count_if(calls_.begin(), calls_.end(), [](const CallRecord& call) { return !call.ended(); }));
}

void Ledger::watch(const Watched& memory) {
  std::memset(memory.data, static_cast<int>(kEnded), memory.bytes);
  watched_.push_back(memory);
}

void Ledger::unwatch(const std::byte* data) {
  for (auto each = watched_.begin(); each != watched_.end();) {
    if (each->data != data) {
      ++each;
      continue;
    }
    // The comparison checks that all bytes are equal.
    const bool kept = each->bytes == 0 || (*each->data == kEnded &&
                                           std::memcmp(each->data, each->data + 1, each->bytes - 1) == 0);
    if (!kept) {
      violation("memory of a call changed after its end");
    }
    each = watched_.erase(each);
  }
}

std::vector<std::string> Ledger::violations(bool final) {
  while (final && !watched_.empty()) unwatch(watched_.front().data);
  std::vector<std::string> all = violations_;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const CallRecord& call = calls_[i];
    const std::string name = "call " + std::to_string(i + 1) + ": ";
    if (call.last_events > 1) all.push_back(name + std::to_string(call.last_events) + " last events");
    if (final && !call.ended()) all.push_back(name + "never ended");
    if (final && call.token > 0 && call.sent_events != 1) {
      all.push_back(name + std::to_string(call.sent_events) + " SENT events");
    }
    if (final && call.released_events != (call.held != 0 ? 1 : 0)) {
      all.push_back(name + std::to_string(call.released_events) + " RELEASED events");
    }
    if (call.began > 1) all.push_back(name + "ran " + std::to_string(call.began) + " times");
    if (call.ended() && call.processed == Processed::no && call.began != 0)
      all.push_back(name + "sent: no, but it ran");
    if (call.ended() && call.processed == Processed::yes && call.began != 1)
      all.push_back(name + "sent: yes, but it never ran");
  }
  return all;
}

}  // namespace rdma_rpc::session::test
