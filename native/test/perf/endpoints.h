// Defines endpoints that wrap an endpoint on a fabric, and add faults or behaviour that the loops of perf
// must handle. pair_test.cc uses this file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "perf/endpoint.h"

namespace rdma_rpc::perf {

/// Damages one byte of an arrived message before it is checked.
class Damaged final : public Endpoint {
 public:
  explicit Damaged(std::unique_ptr<Endpoint> inner) : inner_(std::move(inner)) {}
  /// Plans the damage of the byte at offset `at` of the memory. The damage happens when `after` receives (or
  /// requests of this side) have completed.
  void plan(std::uint64_t at, bool receives, std::uint64_t after) {
    at_ = at, receives_ = receives, after_ = after, seen_ = 0;
  }

  const Limits& limits() const override { return inner_->limits(); }
  std::byte* data() override { return inner_->data(); }
  Memory memory() const override { return inner_->memory(); }
  std::vector<std::byte> address(std::uint32_t i) const override { return inner_->address(i); }
  std::string connect(std::uint32_t i, std::span<const std::byte> peer) override {
    return inner_->connect(i, peer);
  }
  std::string reach(const Memory& peer) override { return inner_->reach(peer); }
  bool is_connected(std::uint32_t i) const override { return inner_->is_connected(i); }
  std::string error(std::uint32_t i) const override { return inner_->error(i); }
  std::size_t post(std::uint32_t i, std::span<const Request> requests) override {
    return inner_->post(i, requests);
  }
  bool post_receive(std::uint32_t i, std::uint64_t id, std::uint64_t to, std::uint32_t length) override {
    return inner_->post_receive(i, id, to, length);
  }
  std::size_t poll(std::span<Completion> out) override {
    const std::size_t count = inner_->poll(out.first(std::min<std::size_t>(out.size(), 1)));
    if (count != 0 && out[0].received == receives_ && ++seen_ == after_) data()[at_] ^= std::byte{1};
    if (count != 0 && !out[0].received) out[0].failure = std::exchange(failure_, out[0].failure);
    return count;
  }
  /// Makes the next request that completes report this failure.
  void fail_next(const char* failure) { failure_ = failure; }
  /// Sets a function that is called when the loop is about to sleep.
  void before_sleep(std::function<void()> action) { before_sleep_ = std::move(action); }
  bool arm() override {
    if (before_sleep_) before_sleep_();
    return inner_->arm();
  }
  void acknowledge() override { inner_->acknowledge(); }
  int fd() const override { return inner_->fd(); }

 private:
  std::unique_ptr<Endpoint> inner_;
  std::uint64_t at_ = 0, after_ = 0, seen_ = 0;
  bool receives_ = false;
  const char* failure_ = nullptr;
  std::function<void()> before_sleep_;
};

/// Behaves like a fabric with shared receives, from the loops' point of view: a message of one queue pair
/// uses a receive that was posted for the previous one.
class Crossed final : public Endpoint {
 public:
  Crossed(std::unique_ptr<Endpoint> inner, std::uint32_t queue_pairs)
      : inner_(std::move(inner)), queue_pairs_(queue_pairs) {}

  const Limits& limits() const override { return inner_->limits(); }
  std::byte* data() override { return inner_->data(); }
  Memory memory() const override { return inner_->memory(); }
  std::vector<std::byte> address(std::uint32_t i) const override { return inner_->address(i); }
  std::string connect(std::uint32_t i, std::span<const std::byte> peer) override {
    return inner_->connect(i, peer);
  }
  std::string reach(const Memory& peer) override { return inner_->reach(peer); }
  bool is_connected(std::uint32_t i) const override { return inner_->is_connected(i); }
  std::string error(std::uint32_t i) const override { return inner_->error(i); }
  std::size_t post(std::uint32_t i, std::span<const Request> requests) override {
    return inner_->post(i, requests);
  }
  bool post_receive(std::uint32_t i, std::uint64_t id, std::uint64_t to, std::uint32_t length) override {
    const std::uint32_t other = (i + 1) % queue_pairs_;
    came_on_[id] = other;
    return inner_->post_receive(other, id, to, length);
  }
  std::size_t poll(std::span<Completion> out) override {
    const std::size_t count = inner_->poll(out);
    for (Completion& each : out.first(count)) each.queue_pair = each.received ? came_on_.at(each.id) : 0;
    return count;
  }
  bool arm() override { return inner_->arm(); }
  void acknowledge() override { inner_->acknowledge(); }
  int fd() const override { return inner_->fd(); }

 private:
  std::unique_ptr<Endpoint> inner_;
  const std::uint32_t queue_pairs_;
  std::map<std::uint64_t, std::uint32_t> came_on_;  ///< queue pair of the message, by the id of its receive
};

}  // namespace rdma_rpc::perf
