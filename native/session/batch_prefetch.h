// Prefetches the memory of all calls of a batch of submissions or completions into the CPU cache before the
// batch is handled. With calls on many sessions this memory is in no cache; with calls of one session it is,
// and nothing is prefetched. Used by Context, on its thread.
#pragma once

#include <cstdint>
#include <span>

#include "fabric/fabric.h"
#include "session/session_table.h"

namespace rdma_rpc::session {

/// `words`: entries of the submissions array.
void prefetch_submissions(const SessionTable& sessions, std::span<const std::int32_t> words);
/// kEventsMax at most.
void prefetch_completions(const SessionTable& sessions, std::span<const fabric::Wc> completions);

}  // namespace rdma_rpc::session
