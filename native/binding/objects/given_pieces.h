// A bulk submission and its pieces: submitBulk() of runtime/native.ts. On the JS thread.
#pragma once

#include <napi.h>

#include <span>
#include <vector>

#include "binding/buffers/watched_buffers.h"
#include "memory/arena.h"
#include "session/shared.h"

namespace rdma_rpc::binding {

enum class PiecesRead : std::uint8_t { all, thread_ends, no_bytes };

/// What submitBulk() is given, but for its slot and pieces.
session::BulkSubmission read_submission(const Napi::CallbackInfo& info);

/// `words`: of `count` pieces of the arena, see session/boundary.h. `no_bytes`: one of them is in no block.
PiecesRead read_pieces(std::span<const std::int32_t> words, std::uint32_t count, const memory::Arena& arena,
                       std::vector<session::GivenPiece>& pieces);
/// `values`: an array of Uint8Arrays; `keys`: of as many numbers. `no_bytes`: one of them is no Uint8Array.
PiecesRead read_pieces(Napi::Env env, Napi::Value values, Napi::Value keys, WatchedBuffers& watched,
                       std::vector<session::GivenPiece>& pieces);

}  // namespace rdma_rpc::binding
