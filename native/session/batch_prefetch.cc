// See batch_prefetch.h.
#include "session/batch_prefetch.h"

#include <array>
#include <utility>

#include "session/boundary.h"
#include "session/limits.h"

namespace rdma_rpc::session {

namespace sub = boundary::sub;

namespace {
/// Performs each step for the whole batch before the next step, so that the cache misses of a step overlap.
template <class Batch, class Step>
void in_steps(const Batch& batch, std::size_t count, Step&& step) {
  for (int at = 0; at < Session::kExpectSteps; ++at) {
    for (std::size_t i = 0; i < count; ++i) step(at, batch[i]);
  }
}
}  // namespace

void prefetch_submissions(const SessionTable& sessions, std::span<const std::int32_t> words) {
  struct Next {
    const Session* session;
    std::uint32_t slot;
  };
  std::array<Next, kSubmissionsMax> batch;
  std::size_t found = 0;
  std::uint32_t before = kAllSessions;
  for (; !words.empty(); words = words.subspan(sub::words)) {
    const auto number = static_cast<std::uint32_t>(words[sub::session]);
    if (number == std::exchange(before, number)) continue;
    if (const Session* session = sessions.likely(number))
      batch[found++] = {session, wire::call_slot(static_cast<std::uint32_t>(words[sub::call]))};
  }
  if (found < 2) return;
  in_steps(batch, found, [](int step, const Next& next) { next.session->expect(step, next.slot); });
}

void prefetch_completions(const SessionTable& sessions, std::span<const fabric::Wc> completions) {
  struct Next {
    const Session* session;
    const fabric::Wc* wc;
  };
  std::array<Next, kEventsMax> batch;
  std::size_t found = 0;
  std::uint32_t before = kAllSessions;
  for (const fabric::Wc& wc : completions) {
    const auto own = static_cast<std::uint32_t>((wc.wr_id & ~kReceiveBit) >> 32);
    const std::uint32_t number = own == kAllSessions ? wc.tag : own;
    if (number == std::exchange(before, number)) continue;
    if (const Session* session = sessions.likely(number)) batch[found++] = {session, &wc};
  }
  if (found < 2) return;
  in_steps(batch, found, [](int step, const Next& next) { next.session->expect_receive(step, *next.wc); });
}

}  // namespace rdma_rpc::session
