// A bulk submission and its gather entries: submitBulk() of runtime/native/native.ts. On the JS thread.
#pragma once

#include <napi.h>

#include <cstdint>
#include <vector>

#include "binding/engine.h"
#include "session/submission.h"

namespace rdma_rpc::binding {

enum class GatherEntriesRead : std::uint8_t { all, thread_ends, no_bytes };

/// What submitBulk() is given, but for its slot and gather entries.
session::BulkSubmission read_submission(const Napi::CallbackInfo& info);

/// The first `count` of Engine::gather_entries(), see session/boundary.h. `no_bytes`: one of them is in no
/// block.
GatherEntriesRead read_gather_entries(Engine& engine, std::uint32_t count,
                                      std::vector<session::GivenGatherEntry>& gather_entries);
/// `values`: an array of Uint8Arrays; `keys`: of as many numbers. `no_bytes`: one of them is no Uint8Array.
GatherEntriesRead read_gather_entries(Napi::Env env, Napi::Value values, Napi::Value keys, Engine& engine,
                                      std::vector<session::GivenGatherEntry>& gather_entries);

}  // namespace rdma_rpc::binding
