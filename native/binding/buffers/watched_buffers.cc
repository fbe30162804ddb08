// See watched_buffers.h.
#include "binding/buffers/watched_buffers.h"

#include <utility>

namespace rdma_rpc::binding {

class WatchedBuffers::Watch final : public fabric::Presence {
 public:
  Watch(napi_env env, std::shared_ptr<Watches> watches, std::uint64_t key, napi_ref buffer, void* data,
        std::size_t bytes)
      : env_(env), watches_(std::move(watches)), key_(key), buffer_(buffer), data_(data), bytes_(bytes) {}
  ~Watch() override {
    napi_delete_reference(env_, buffer_);
    const auto found = watches_->find(key_);
    if (found != watches_->end() && found->second.expired()) watches_->erase(found);
  }

  bool present() const override {
    const Napi::HandleScope scope(env_);
    napi_value value = nullptr;
    void* data = nullptr;
    std::size_t bytes = 0;
    return napi_get_reference_value(env_, buffer_, &value) == napi_ok && value != nullptr &&
           napi_get_arraybuffer_info(env_, value, &data, &bytes) == napi_ok && data == data_ &&
           bytes == bytes_;
  }

 private:
  napi_env env_;
  std::shared_ptr<Watches> watches_;
  std::uint64_t key_;
  napi_ref buffer_;  ///< weak: JS keeps buffers that calls use (runtime/boundary/outgoing/bulk.ts)
  void* data_;
  std::size_t bytes_;
};

WatchedBuffers::WatchedBuffers(Napi::Env env) : env_(env), watches_(std::make_shared<Watches>()) {}

std::shared_ptr<const fabric::Presence> WatchedBuffers::watch(std::uint64_t key, napi_value buffer) {
  const auto known = watches_->find(key);
  if (known != watches_->end()) {
    if (auto watch = known->second.lock(); watch != nullptr && watch->present()) return watch;
  }
  void* data = nullptr;
  std::size_t bytes = 0;
  napi_ref reference = nullptr;
  if (napi_get_arraybuffer_info(env_, buffer, &data, &bytes) != napi_ok ||
      napi_create_reference(env_, buffer, 0, &reference) != napi_ok) {
    return nullptr;
  }
  auto watch = std::make_shared<Watch>(env_, watches_, key, reference, data, bytes);
  (*watches_)[key] = watch;
  return watch;
}

}  // namespace rdma_rpc::binding
