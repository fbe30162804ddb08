// See given_gather_entries.h.
#include "binding/objects/given_gather_entries.h"

#include <cstddef>
#include <span>

#include "session/boundary.h"

namespace rdma_rpc::binding {

namespace gather_entry_words = session::boundary::gather_entry;

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
  submission.aligned = (number(11) & session::boundary::kAligned) != 0;
  submission.reply_buffer_only = (number(11) & session::boundary::kReplyBufferOnly) != 0;
  return submission;
}

GatherEntriesRead read_gather_entries(Engine& engine, std::uint32_t count,
                                      std::vector<session::GivenGatherEntry>& gather_entries) {
  const std::span<const std::int32_t> words = engine.gather_entries();
  const std::span<std::byte> text = engine.scratch();
  const memory::Block text_block{text.data(), text.size(), nullptr};
  if (count > words.size() / gather_entry_words::words) return GatherEntriesRead::no_bytes;
  gather_entries.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto gather_entry =
        words.subspan(std::size_t{i} * gather_entry_words::words, gather_entry_words::words);
    const auto id = static_cast<memory::BlockId>(gather_entry[gather_entry_words::block]);
    const memory::Block* block = id == memory::kNoBlock ? &text_block : engine.context().arena().known(id);
    const auto offset = static_cast<std::uint32_t>(gather_entry[gather_entry_words::offset]);
    const auto bytes = static_cast<std::uint32_t>(gather_entry[gather_entry_words::bytes]);
    if (block == nullptr || offset > block->capacity || bytes > block->capacity - offset)
      return GatherEntriesRead::no_bytes;
    gather_entries.push_back({.data = block->data + offset,
                              .bytes = bytes,
                              .lent = gather_entry[gather_entry_words::lent] != 0,
                              .text = id == memory::kNoBlock});
  }
  return GatherEntriesRead::all;
}

GatherEntriesRead read_gather_entries(Napi::Env env, Napi::Value values, Napi::Value keys, Engine& engine,
                                      std::vector<session::GivenGatherEntry>& gather_entries) {
  const std::uint32_t count = values.As<Napi::Array>().Length();
  gather_entries.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    // This function uses plain Node-API. In a thread that is being terminated, reading an element fails.
    // node-addon-api would then abort the process, because it cannot create the error.
    napi_value value = nullptr, key = nullptr, buffer = nullptr;
    napi_typedarray_type type;
    std::size_t bytes = 0, offset = 0;
    void* data = nullptr;
    std::int64_t number_of_buffer = 0;
    if (napi_get_element(env, values, i, &value) != napi_ok ||
        napi_get_element(env, keys, i, &key) != napi_ok ||
        napi_get_value_int64(env, key, &number_of_buffer) != napi_ok) {
      return GatherEntriesRead::thread_ends;
    }
    if (napi_get_typedarray_info(env, value, &type, &bytes, &data, &buffer, &offset) != napi_ok ||
        type != napi_uint8_array) {
      return GatherEntriesRead::no_bytes;
    }
    const std::span<std::byte> room = engine.scratch();
    auto* at = static_cast<std::byte*>(data);
    session::GivenGatherEntry gather_entry{.data = at,
                                           .bytes = bytes,
                                           .lent = number_of_buffer != 0,
                                           .text = at >= room.data() && at < room.data() + room.size()};
    gather_entry.copied = number_of_buffer == session::boundary::kCopiedMemory;
    if (number_of_buffer > 0 || gather_entry.copied) {
      void* buffer_data = nullptr;
      napi_get_arraybuffer_info(env, buffer, &buffer_data, &gather_entry.buffer_bytes);
      gather_entry.buffer_data = static_cast<std::byte*>(buffer_data);
    }
    if (number_of_buffer > 0) {
      gather_entry.key = static_cast<std::uint64_t>(number_of_buffer);
      gather_entry.presence = engine.watched().watch(gather_entry.key, buffer);
    }
    gather_entries.push_back(gather_entry);
  }
  return GatherEntriesRead::all;
}

}  // namespace rdma_rpc::binding
