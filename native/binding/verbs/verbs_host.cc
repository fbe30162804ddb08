// See verbs_host.h.
#include "binding/verbs/verbs_host.h"

#include <utility>

namespace rdma_rpc::binding {

VerbsHost* VerbsHost::open(Napi::Env env, LoopKind loop, const OpenOptions& options, std::string* error) {
  auto fabric = OpenFabric::open(options, error);
  if (fabric == nullptr) return nullptr;
  auto* host = new VerbsHost(env, loop);
  host->device_ = std::make_unique<checked::Device>(OpenFabric::device(fabric));
  host->fabric_ = std::move(fabric);
  napi_add_async_cleanup_hook(
      env, [](napi_async_cleanup_hook_handle, void* data) { static_cast<VerbsHost*>(data)->close(); }, host,
      &host->cleanup_);
  return host;
}

VerbsHost::~VerbsHost() {
  if (cleanup_ != nullptr) napi_remove_async_cleanup_hook(cleanup_);
}

void VerbsHost::close_region(std::uint32_t number) {
  if (const auto region = regions.find(number); region != nullptr) device_->close(*region);
  regions.remove(number);
}

void VerbsHost::close_cq(std::uint32_t number) {
  if (const auto watch = watches_.find(number); watch != watches_.end()) {
    close_watch(std::move(watch->second));
    watches_.erase(watch);
  }
  cqs.remove(number);
}

void VerbsHost::close_watch(std::unique_ptr<ReadyWatch> watch) {
  ++closing_watches_;
  ReadyWatch* closing = watch.release();
  closing->close([this, closing] {
    delete closing;
    if (--closing_watches_ == 0 && closed_) delete this;
  });
}

bool VerbsHost::arm(std::uint32_t number, const Napi::Function& callback, bool solicited,
                    std::string* error) {
  std::unique_ptr<ReadyWatch>& watch = watches_[number];
  if (watch == nullptr) watch = ReadyWatch::open(loop_, env_, cqs.find(number), error);
  if (watch != nullptr) return watch->arm(callback, solicited);
  watches_.erase(number);
  return false;
}

void VerbsHost::close() {
  if (std::exchange(closed_, true)) return;
  if (owner_ != nullptr) *owner_ = nullptr;
  const Napi::HandleScope scope(env_);
  auto watches = std::move(watches_);
  for (auto& [number, watch] : watches) close_watch(std::move(watch));
  qps.clear();
  srqs.clear();
  regions.clear();
  cqs.clear();
  device_.reset();
  fabric_.reset();
  if (closing_watches_ == 0) delete this;
}

}  // namespace rdma_rpc::binding
