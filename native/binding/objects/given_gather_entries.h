// Reads the arguments of submitBulk() of runtime/native/native.ts: a bulk submission and its gather entries.
// This code runs on the JS thread.
#pragma once

#include <napi.h>

#include <cstdint>
#include <vector>

#include "binding/engine.h"
#include "session/submission.h"

namespace rdma_rpc::binding {

enum class GatherEntriesRead : std::uint8_t { all, thread_ends, no_bytes };

/// Reads all arguments of submitBulk() except the slot and the gather entries.
session::BulkSubmission read_submission(const Napi::CallbackInfo& info);

/// Reads the first `count` of Engine::gather_entries(), see session/boundary.h. Returns `no_bytes` when an
/// entry lies outside of every block.
GatherEntriesRead read_gather_entries(Engine& engine, std::uint32_t count,
                                      std::vector<session::GivenGatherEntry>& gather_entries);
/// Reads gather entries from `values`, an array of Uint8Arrays, and from `keys`, an array of the same length
/// with numbers. Returns `no_bytes` when a value is not a Uint8Array.
GatherEntriesRead read_gather_entries(Napi::Env env, Napi::Value values, Napi::Value keys, Engine& engine,
                                      std::vector<session::GivenGatherEntry>& gather_entries);

}  // namespace rdma_rpc::binding
