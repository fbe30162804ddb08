// The limit's API for JS. create() is for the process that starts the two ends; open() and start() are for an
// end. Each process has one end. It is called only on the main thread.
#include <cerrno>
#include <cstring>

#include "pump.h"

namespace limit {
namespace {

Pump* pump = nullptr;

napi_value fail(napi_env env, const char* what) {
  napi_throw_error(env, nullptr, what);
  return nullptr;
}

napi_value external_buffer(napi_env env, void* data, std::size_t bytes) {
  napi_value buffer;
  if (napi_create_external_arraybuffer(env, data, bytes, nullptr, nullptr, &buffer) != napi_ok) {
    return fail(env, "limit: this Node does not allow external ArrayBuffers");
  }
  return buffer;
}

void push(napi_env env, napi_value array, std::uint32_t at, std::int32_t number) {
  napi_value value;
  napi_create_int32(env, number, &value);
  napi_set_element(env, array, at, value);
}

/// create(): [memory, wake of side 0, wake of side 1], descriptors that both ends inherit.
napi_value create_fds(napi_env env, napi_callback_info) {
  int memory, wake[2];
  if (!create(memory, wake)) return fail(env, std::strerror(errno));
  napi_value fds;
  napi_create_array(env, &fds);
  push(env, fds, 0, memory);
  push(env, fds, 1, wake[0]);
  push(env, fds, 2, wake[1]);
  return fds;
}

/// open(memory, wake0, wake1, side, adaptive): [ArrayBuffer of the shared memory, ArrayBuffer of the control
/// words].
napi_value open_end(napi_env env, napi_callback_info info) {
  std::size_t count = 5;
  napi_value arguments[5];
  std::int32_t numbers[5] = {};
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  for (std::size_t i = 0; i < 5; ++i) {
    if (napi_get_value_int32(env, arguments[i], &numbers[i]) != napi_ok)
      return fail(env, "limit: open() takes five numbers");
  }
  if (pump != nullptr) return fail(env, "limit: this process has an end already");
  Shared* shared = map(numbers[0]);
  if (shared == nullptr) return fail(env, std::strerror(errno));
  pump = new Pump(env, shared, numbers[3] == 0 ? 0 : 1, {numbers[1], numbers[2]}, numbers[4] != 0);
  napi_value result;
  napi_create_array(env, &result);
  napi_set_element(env, result, 0, external_buffer(env, shared, kBytes));
  napi_set_element(env, result, 1,
                   external_buffer(env, pump->control(), control_words * sizeof(std::uint32_t)));
  return result;
}

/// start(onBatch)
napi_value start(napi_env env, napi_callback_info info) {
  std::size_t count = 1;
  napi_value on_batch;
  napi_get_cb_info(env, info, &count, &on_batch, nullptr, nullptr);
  if (pump == nullptr || !pump->start(on_batch))
    return fail(env, "limit: the event loop refused the handles");
  return nullptr;
}

/// close(): lets the event loop end.
napi_value close_end(napi_env, napi_callback_info) {
  if (pump != nullptr) pump->close();
  return nullptr;
}

napi_value init(napi_env env, napi_value exports) {
  const napi_property_descriptor functions[] = {
      {"create", nullptr, create_fds, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
      {"open", nullptr, open_end, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
      {"start", nullptr, start, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
      {"close", nullptr, close_end, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
  };
  napi_define_properties(env, exports, sizeof functions / sizeof functions[0], functions);
  return exports;
}

}  // namespace
}  // namespace limit

NAPI_MODULE(limit, limit::init)
