// See given_pieces.h.
#include "binding/objects/given_pieces.h"

#include <cstddef>
#include <span>

#include "session/boundary.h"

namespace rdma_rpc::binding {

namespace piece_words = session::boundary::piece;

session::BulkSubmission read_submission(const Napi::CallbackInfo& info) {
  const auto number = [&](std::size_t index) { return info[index].As<Napi::Number>().Uint32Value(); };
  session::BulkSubmission submission;
  submission.op = static_cast<session::boundary::SubOp>(number(0));
  submission.call = number(2);
  submission.method = number(3);
  submission.metadata_bytes = number(5);
  submission.timeout_us = number(6);
  submission.reply_buffer = number(9);
  submission.use = static_cast<memory::Use>(number(10));
  submission.image = (number(11) & session::boundary::kImage) != 0;
  submission.reply_buffer_only = (number(11) & session::boundary::kReplyBufferOnly) != 0;
  return submission;
}

PiecesRead read_pieces(Engine& engine, std::uint32_t count, std::vector<session::GivenPiece>& pieces) {
  const std::span<const std::int32_t> words = engine.pieces();
  const std::span<std::byte> text = engine.text_room();
  const memory::Block text_block{text.data(), text.size(), nullptr};
  if (count > words.size() / piece_words::words) return PiecesRead::no_bytes;
  pieces.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto piece = words.subspan(std::size_t{i} * piece_words::words, piece_words::words);
    const auto id = static_cast<memory::BlockId>(piece[piece_words::block]);
    const memory::Block* block = id == memory::kNoBlock ? &text_block : engine.context().arena().known(id);
    const auto offset = static_cast<std::uint32_t>(piece[piece_words::offset]);
    const auto bytes = static_cast<std::uint32_t>(piece[piece_words::bytes]);
    if (block == nullptr || offset > block->capacity || bytes > block->capacity - offset)
      return PiecesRead::no_bytes;
    pieces.push_back({.data = block->data + offset,
                      .bytes = bytes,
                      .lent = piece[piece_words::lent] != 0,
                      .text = id == memory::kNoBlock});
  }
  return PiecesRead::all;
}

PiecesRead read_pieces(Napi::Env env, Napi::Value values, Napi::Value keys, Engine& engine,
                       std::vector<session::GivenPiece>& pieces) {
  const std::uint32_t count = values.As<Napi::Array>().Length();
  pieces.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    // Bare Node-API: a thread that is being terminated reads no elements, and node-addon-api would end the
    // process over the error that it cannot make then.
    napi_value value = nullptr, key = nullptr, buffer = nullptr;
    napi_typedarray_type type;
    std::size_t bytes = 0, offset = 0;
    void* data = nullptr;
    std::int64_t number_of_buffer = 0;
    if (napi_get_element(env, values, i, &value) != napi_ok ||
        napi_get_element(env, keys, i, &key) != napi_ok ||
        napi_get_value_int64(env, key, &number_of_buffer) != napi_ok) {
      return PiecesRead::thread_ends;
    }
    if (napi_get_typedarray_info(env, value, &type, &bytes, &data, &buffer, &offset) != napi_ok ||
        type != napi_uint8_array) {
      return PiecesRead::no_bytes;
    }
    const std::span<std::byte> room = engine.text_room();
    auto* at = static_cast<std::byte*>(data);
    session::GivenPiece piece{.data = at,
                              .bytes = bytes,
                              .lent = number_of_buffer != 0,
                              .text = at >= room.data() && at < room.data() + room.size()};
    piece.copied = number_of_buffer == session::boundary::kCopiedMemory;
    if (number_of_buffer > 0 || piece.copied) {
      void* buffer_data = nullptr;
      napi_get_arraybuffer_info(env, buffer, &buffer_data, &piece.buffer_bytes);
      piece.buffer_data = static_cast<std::byte*>(buffer_data);
    }
    if (number_of_buffer > 0) {
      piece.key = static_cast<std::uint64_t>(number_of_buffer);
      piece.presence = engine.watched().watch(piece.key, buffer);
    }
    pieces.push_back(piece);
  }
  return PiecesRead::all;
}

}  // namespace rdma_rpc::binding
