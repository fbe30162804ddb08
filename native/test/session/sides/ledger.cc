// See ledger.h.
#include "session/sides/ledger.h"

#include <algorithm>
#include <cstring>

namespace rdma_rpc::session::test {

using boundary::EvKind;
using boundary::Processed;

namespace {
constexpr std::byte kEnded{0xa5};
std::byte pattern_at(std::uint64_t seed, std::size_t i) {
  return static_cast<std::byte>(seed * 131 + i * 7 + (i >> 8) * 13 + 1);
}
}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern_at(seed, i);
}

bool is_pattern(std::span<const std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern_at(seed, i)) return false;
  }
  return true;
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
    if (!std::all_of(each->data, each->data + each->bytes, [](std::byte b) { return b == kEnded; })) {
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
