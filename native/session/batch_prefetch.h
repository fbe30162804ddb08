// Prefetches the memory of all calls of a batch of submissions or completions into the CPU cache before the
// batch is handled. When the calls belong to many sessions, this memory is in no cache. When all belong to
// one session, the memory is in the cache, so nothing is prefetched. This file is used by Context, on the
// context's thread.
#pragma once

#include <cstdint>
#include <span>

#include "fabric/fabric.h"
#include "session/session_table.h"

namespace rdma_rpc::session {

/// `words` contains entries of the submissions array.
void prefetch_submissions(const SessionTable& sessions, std::span<const std::int32_t> words);
/// Takes at most kEventsMax completions.
void prefetch_completions(const SessionTable& sessions, std::span<const fabric::Wc> completions);

}  // namespace rdma_rpc::session
