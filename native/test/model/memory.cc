// See memory.h.
#include "model/memory.h"

#include <algorithm>
#include <cstring>

namespace rdma_rpc::fabric::model {
namespace {

constexpr std::size_t kLine = 64;

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

std::uint64_t raw(const void* word, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, word, bytes);
  return value;
}

}  // namespace

void Memory::Knowledge::join(const Knowledge& other) {
  if (view.size() < other.view.size()) view.resize(other.view.size());
  for (std::size_t i = 0; i < other.view.size(); ++i) view[i] = std::max(view[i], other.view[i]);
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other.clock[i]);
}

std::uint32_t& Memory::at(View& view, std::size_t word) {
  if (view.size() <= word) view.resize(word + 1);
  return view[word];
}

std::size_t Memory::index_of(const void* word, std::size_t bytes) {
  const std::uint64_t place = places_.of(word);
  const auto [found, fresh] = words_by_place_.try_emplace(place, words_.size());
  if (fresh) words_.push_back({word, place, bytes, {{raw(word, bytes), {}}}});
  return found->second;
}

std::uint64_t Memory::load(std::size_t thread, const void* word, std::size_t bytes, std::memory_order order,
                           const Choose& choose) {
  const std::size_t index = index_of(word, bytes);
  Knowledge& now = threads_[thread].now;
  const bool sequential = order == std::memory_order_seq_cst;
  std::uint32_t& oldest = at(now.view, index);
  if (sequential) oldest = std::max(oldest, at(sequential_.view, index));
  const auto newest = static_cast<std::uint32_t>(words_[index].values.size() - 1);
  const auto chosen = newest - static_cast<std::uint32_t>(choose(newest - oldest + 1));
  oldest = chosen;
  if (sequential) at(sequential_.view, index) = chosen;
  const Value& value = words_[index].values[chosen];
  (acquires(order) ? now : threads_[thread].acquired).join(value.released);
  return value.value;
}

/// Returns the view that a release passes on. Later accesses are not included.
Memory::Knowledge Memory::release(Thread& thread, std::size_t number) {
  Knowledge knowledge = thread.now;
  ++thread.now.clock[number];
  return knowledge;
}

void Memory::store(std::size_t thread, void* word, std::size_t bytes, std::uint64_t value,
                   std::memory_order order) {
  const std::size_t index = index_of(word, bytes);
  std::memcpy(word, &value, bytes);
  Thread& by = threads_[thread];
  const auto number = static_cast<std::uint32_t>(words_[index].values.size());
  at(by.now.view, index) = number;
  words_[index].values.push_back({value, releases(order) ? release(by, thread) : by.released});
  if (order == std::memory_order_seq_cst) at(sequential_.view, index) = number;
}

std::uint64_t Memory::update(std::size_t thread, void* word, std::size_t bytes, std::uint64_t keep,
                             std::uint64_t set, std::memory_order order) {
  const std::uint64_t before = load(thread, word, bytes, order, [](std::size_t) { return std::size_t{0}; });
  const Knowledge released = words_[index_of(word, bytes)].values.back().released;
  store(thread, word, bytes, (before & keep) | set, order);
  words_[index_of(word, bytes)].values.back().released.join(released);
  return before;
}

void Memory::fence(std::size_t thread, std::memory_order order) {
  Thread& by = threads_[thread];
  if (acquires(order)) by.now.join(by.acquired);
  if (order == std::memory_order_seq_cst) {
    // This applies to values only: two fences alone establish no happens-before relation between accesses.
    Knowledge seen{sequential_.view, {}};
    by.now.join(seen);
    seen.view = by.now.view;
    sequential_.join(seen);
  }
  if (releases(order)) by.released = release(by, thread);
}

std::string Memory::touch(std::size_t thread, const void* at, std::size_t bytes, bool write) {
  const std::uint64_t place = bytes != 0 ? places_.of(at) : Places::kPrivate;
  if (place == Places::kPrivate) return "";
  const Clock& clock = threads_[thread].now.clock;
  for (std::uint64_t line = place / kLine; line <= (place + bytes - 1) / kLine; ++line) {
    Touches& touches = touches_[line];
    if (touches.writer != kThreadsMax && touches.written > clock[touches.writer]) {
      return write ? "bytes are written that the other side has just written"
                   : "bytes are read that may not be there yet";
    }
    for (std::size_t other = 0; write && other < kThreadsMax; ++other) {
      if (touches.read[other] > clock[other]) return "bytes are written while the other side may read them";
    }
    if (write) {
      touches.writer = thread;
      touches.written = clock[thread];
    } else {
      touches.read[thread] = clock[thread];
    }
  }
  return "";
}

void Memory::overwritten(std::size_t thread, const void* at, std::size_t bytes) {
  const std::uint64_t place = bytes != 0 ? places_.of(at) : Places::kPrivate;
  if (place == Places::kPrivate) return;
  for (std::size_t index = 0; index < words_.size(); ++index) {
    Word& word = words_[index];
    if (word.place >= place + bytes || place >= word.place + word.bytes) continue;
    Memory::at(threads_[thread].now.view, index) = static_cast<std::uint32_t>(word.values.size());
    word.values.push_back({raw(word.at, word.bytes), threads_[thread].released});
  }
}

bool Memory::catch_up(std::size_t thread) {
  bool moved = false;
  for (std::size_t index = 0; index < words_.size(); ++index) {
    std::uint32_t& oldest = at(threads_[thread].now.view, index);
    const auto newest = static_cast<std::uint32_t>(words_[index].values.size() - 1);
    moved = moved || oldest != newest;
    oldest = newest;
  }
  return moved;
}

}  // namespace rdma_rpc::fabric::model
