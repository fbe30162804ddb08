// A bulk submission and its pieces: submitBulk() of runtime/native/native.ts. On the JS thread.
#pragma once

#include <napi.h>

#include <cstdint>
#include <vector>

#include "binding/engine.h"
#include "session/submission.h"

namespace rdma_rpc::binding {

enum class PiecesRead : std::uint8_t { all, thread_ends, no_bytes };

/// What submitBulk() is given, but for its slot and pieces.
session::BulkSubmission read_submission(const Napi::CallbackInfo& info);

/// The first `count` of Engine::pieces(), see session/boundary.h. `no_bytes`: one of them is in no block.
PiecesRead read_pieces(Engine& engine, std::uint32_t count, std::vector<session::GivenPiece>& pieces);
/// `values`: an array of Uint8Arrays; `keys`: of as many numbers. `no_bytes`: one of them is no Uint8Array.
PiecesRead read_pieces(Napi::Env env, Napi::Value values, Napi::Value keys, Engine& engine,
                       std::vector<session::GivenPiece>& pieces);

}  // namespace rdma_rpc::binding
