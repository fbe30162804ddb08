// Before a batch of submissions or completions is worked on: fetches into the cache what the calls of it
// touch, for all of them at once. What calls on many sessions touch is in no cache; where all are of one
// session it is, and nothing is fetched. Used by Context, on its thread.
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
