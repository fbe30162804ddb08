// The atomic words with which native/fabric/shm is built for the model: their loads and stores are steps of
// an Execution (execution.h). RDMA_RPC_SHARED_WORDS names this file for inclusion. The functions run on the
// thread that the Execution has scheduled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rdma_rpc::fabric::model {

std::uint64_t load(const void* word, std::size_t bytes, std::memory_order order);
void store(void* word, std::size_t bytes, std::uint64_t value, std::memory_order order);
/// Loads the newest value and stores `(value & keep) | set`, atomically.
std::uint64_t update(void* word, std::size_t bytes, std::uint64_t keep, std::uint64_t set,
                     std::memory_order order);
void fence(std::memory_order order);
void step();
void copy(void* to, const void* from, std::size_t bytes);

}  // namespace rdma_rpc::fabric::model

namespace rdma_rpc::fabric::shm {

template <class T>
class SharedWord {
 public:
  static constexpr bool is_always_lock_free = true;
  T load(std::memory_order order = std::memory_order_seq_cst) const {
    return static_cast<T>(model::load(&value_, sizeof value_, order));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    model::store(&value_, sizeof value_, value, order);
  }
  T fetch_or(T set, std::memory_order order) {
    return static_cast<T>(model::update(&value_, sizeof value_, ~std::uint64_t{0}, set, order));
  }
  T exchange(T value, std::memory_order order) {
    return static_cast<T>(model::update(&value_, sizeof value_, 0, value, order));
  }
  /// Compares and stores in two steps, which suffices: it is called only while connecting, which is not
  /// modelled.
  bool compare_exchange_strong(T& expected, T desired) {
    const T found = load();
    if (found == expected) {
      store(desired);
      return true;
    }
    expected = found;
    return false;
  }

 private:
  T value_;
};

inline void shared_fence(std::memory_order order) { model::fence(order); }
inline void stall_point() { model::step(); }
inline void copy_shared(void* to, const void* from, std::size_t bytes) { model::copy(to, from, bytes); }

}  // namespace rdma_rpc::fabric::shm
