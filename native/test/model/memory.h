// Implements shared memory that behaves exactly as C++ guarantees. An atomic word is the list of all values
// that were stored to it, and a load may return any value that its thread does not know to be old. Two
// threads may access non-atomic bytes only where one access happens before the other. Execution uses this
// file, one thread at a time. Each thread has a view: for each word, the oldest value that the thread may
// still read. A release store attaches the view to its value, and an acquire load adopts that view. Fences do
// the same for the relaxed accesses around them. Sequential consistency is one more view, which such fences
// and accesses share. (This corresponds to the "strong RC11" models; it allows a little less than C++ where a
// word is used with both kinds of accesses.)
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/places.h"

namespace rdma_rpc::fabric::model {

inline constexpr std::size_t kThreadsMax = 2;

class Memory {
 public:
  /// Returns the index of the value that the load returns, among `options` values; 0 is the newest.
  using Choose = std::function<std::size_t(std::size_t options)>;

  std::uint64_t load(std::size_t thread, const void* word, std::size_t bytes, std::memory_order order,
                     const Choose& choose);
  void store(std::size_t thread, void* word, std::size_t bytes, std::uint64_t value, std::memory_order order);
  /// Updates the newest value, and returns its index. The new value inherits the release of the value that it
  /// replaces (a release sequence).
  std::uint64_t update(std::size_t thread, void* word, std::size_t bytes, std::uint64_t keep,
                       std::uint64_t set, std::memory_order order);
  void fence(std::size_t thread, std::memory_order order);
  /// Checks a read or write of non-atomic bytes for data races. Returns "", or a description of the error.
  std::string touch(std::size_t thread, const void* at, std::size_t bytes, bool write);
  /// Records a copy to this address, because the words there have new values.
  void overwritten(std::size_t thread, const void* at, std::size_t bytes);
  /// Makes all stores so far visible to the thread, as a real machine finally does. From now on, the thread
  /// reads the newest value of every word. Returns false if all stores were visible already.
  bool catch_up(std::size_t thread);

 private:
  using View = std::vector<std::uint32_t>;  ///< the index of a value, by word
  using Clock = std::array<std::uint32_t, kThreadsMax>;
  /// One thread's knowledge of the other: which values are visible, and which accesses happened before.
  struct Knowledge {
    View view;
    Clock clock{};
    void join(const Knowledge& other);
  };
  struct Value {
    std::uint64_t value;
    Knowledge released;
  };
  struct Word {
    const void* at;
    std::uint64_t place;
    std::size_t bytes;
    std::vector<Value> values;
  };
  struct Thread {
    /// `acquired` comes from relaxed loads, for a later fence. `released` comes from a fence.
    Knowledge now, acquired, released;
  };
  struct Touches {
    std::size_t writer = kThreadsMax;
    std::uint32_t written = 0;
    Clock read{};
  };
  std::size_t index_of(const void* word, std::size_t bytes);
  static std::uint32_t& at(View& view, std::size_t word);
  Knowledge release(Thread& thread, std::size_t number);

  Places places_;
  std::unordered_map<std::uint64_t, std::size_t> words_by_place_;
  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Touches> touches_;  ///< by cache line
  std::array<Thread, kThreadsMax> threads_{
      {{{{}, {1, 0}}, {}, {}}, {{{}, {0, 1}}, {}, {}}}};  // an access at time 0 happened before everything
  Knowledge sequential_;
};

}  // namespace rdma_rpc::fabric::model
