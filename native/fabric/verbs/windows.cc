// See windows.h.
#include "fabric/verbs/windows.h"

#include <vector>

#include "fabric/verbs/queue/queue_pair.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr int kVariantBits = 8;

}  // namespace

void WindowTable::add(Window& window) { windows_[window.rkey() >> kVariantBits] = &window; }

void WindowTable::remove(const Window& window) { windows_.erase(window.rkey() >> kVariantBits); }

Window* WindowTable::find(std::uint32_t key) const {
  const auto found = windows_.find(key >> kVariantBits);
  return found != windows_.end() && found->second->rkey() == key ? found->second : nullptr;
}

void WindowTable::free_those_on(const QueuePair& qp) {
  if (qp.windows_bound == 0) return;
  std::vector<Window*> bound;
  for (const auto& [index, window] : windows_) {
    if (window->last_queue_pair() == &qp) bound.push_back(window);
  }
  for (Window* window : bound) {
    if (window->may_be_bound()) {
      window->replace();
    } else {
      window->unbind();
    }
  }
}

void WindowTable::free_those_on(const Region& region) {
  std::vector<Window*> bound;
  for (const auto& [index, window] : windows_) {
    if (window->region() == &region) bound.push_back(window);
  }
  for (Window* window : bound) window->replace();
}

Window::Window(MwPtr mw, WindowTable& table, DeviceCounters& counters)
    : mw_(std::move(mw)), table_(table), counters_(counters) {
  rkey_ = mw_->rkey;
  table_.add(*this);
  ++counters_.memory_windows;
}

Window::~Window() {
  unbind();
  if (mw_ != nullptr) table_.remove(*this);
  --counters_.memory_windows;
}

std::uint32_t Window::bind(const QueuePair& qp, const Region& region) {
  unbind();
  queue_pair_ = last_queue_pair_ = &qp;
  ++qp.windows_bound;
  region_ = &region;
  ++region.windows_bound;
  return rkey_ = ibv_inc_rkey(rkey_);
}

void Window::unbind_by(std::uint32_t request) {
  leave();
  invalidated_by_ = request;
}

void Window::unbind() {
  leave();
  if (last_queue_pair_ != nullptr) --last_queue_pair_->windows_bound;
  last_queue_pair_ = nullptr;
}

void Window::leave() {
  queue_pair_ = nullptr;
  if (region_ != nullptr) --region_->windows_bound;
  region_ = nullptr;
}

bool Window::may_be_bound() const {
  return queue_pair_ != nullptr ||
         (last_queue_pair_ != nullptr && !last_queue_pair_->has_carried_out(invalidated_by_));
}

void Window::replace() {
  unbind();
  if (mw_ == nullptr) return;
  table_.remove(*this);
  ibv_pd* pd = mw_->pd;
  mw_.reset();
  mw_.reset(ibv_alloc_mw(pd, IBV_MW_TYPE_2));
  if (mw_ == nullptr) return;
  rkey_ = mw_->rkey;
  table_.add(*this);
}

}  // namespace rdma_rpc::fabric::verbs
