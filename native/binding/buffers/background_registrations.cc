// See background_registrations.h.
#include "binding/buffers/background_registrations.h"

#include <utility>

namespace rdma_rpc::binding {

/// Members are destroyed in reverse order, so the registration is destroyed before its device.
struct BackgroundRegistrations::Work {
  std::shared_ptr<fabric::Device> device;
  std::shared_ptr<fabric::Registration> registration;
  std::shared_ptr<Finished> finished;
  std::uint64_t key;
  napi_async_work work = nullptr;
};

BackgroundRegistrations::BackgroundRegistrations(napi_env env, std::weak_ptr<fabric::Device> device,
                                                 Finished finished)
    : env_(env), device_(std::move(device)), finished_(std::make_shared<Finished>(std::move(finished))) {}

BackgroundRegistrations::~BackgroundRegistrations() { *finished_ = nullptr; }

bool BackgroundRegistrations::start(std::uint64_t key, std::shared_ptr<fabric::Registration> registration) {
  auto work = std::make_unique<Work>(Work{device_.lock(), std::move(registration), finished_, key});
  napi_value name = nullptr;
  if (work->device == nullptr ||
      napi_create_string_utf8(env_, "rdma-rpc registration", NAPI_AUTO_LENGTH, &name) != napi_ok)
    return false;
  const auto pin = [](napi_env, void* data) { static_cast<Work*>(data)->registration->pin(); };
  const auto complete = [](napi_env env, napi_status, void* data) {
    const std::unique_ptr<Work> done(static_cast<Work*>(data));
    napi_delete_async_work(env, done->work);
    if (*done->finished) (*done->finished)(done->key, *done->registration);
  };
  if (napi_create_async_work(env_, nullptr, name, pin, complete, work.get(), &work->work) != napi_ok)
    return false;
  if (napi_queue_async_work(env_, work->work) != napi_ok) {
    napi_delete_async_work(env_, work->work);
    return false;
  }
  static_cast<void>(work.release());
  return true;
}

}  // namespace rdma_rpc::binding
