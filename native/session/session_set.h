// Implements a set of sessions of a context, such as those with running time limits. A turn visits only the
// sessions in the sets, so its cost depends on the number of active sessions. Sessions add themselves, and
// the context visits them, on its thread.
#pragma once

#include <cstdint>
#include <vector>

namespace rdma_rpc::session {

/// The sets that a session is in, with one bit for each. The session keeps these bits.
using SetBits = std::uint32_t;

class SessionSet {
 public:
  explicit SessionSet(SetBits bit) : bit_(bit) {}

  /// Adds the session. Does nothing when the session is in the set already.
  void add(SetBits& in, std::uint32_t number) {
    if ((in & bit_) != 0) return;
    in |= bit_;
    numbers_.push_back(number);
  }
  /// Reserves memory for this number of sessions, so that add() allocates nothing.
  void reserve(std::size_t sessions) {
    numbers_.reserve(sessions);
    visited_.reserve(sessions);
  }
  bool empty() const { return numbers_.empty(); }
  /// Returns the numbers of the sessions, in the order in which they were added. Some sessions may have
  /// ended.
  const std::vector<std::uint32_t>& numbers() const { return numbers_; }

  /// Removes every session from the set, and calls `visit(session)` for each that `find` still knows. `visit`
  /// may add the session again. Returns the number of sessions visited.
  template <class Find, class Visit>
  std::size_t visit(Find&& find, Visit&& visit) {
    std::size_t there = 0;
    visited_.swap(numbers_);
    for (const std::uint32_t number : visited_) {
      auto* session = find(number);
      if (session == nullptr) continue;
      session->sets() &= ~bit_;
      ++there;
      visit(*session);
    }
    visited_.clear();
    return there;
  }

 private:
  const SetBits bit_;
  std::vector<std::uint32_t> numbers_, visited_;
};

inline constexpr SetBits kTouched = 1, kTimed = 2, kHolding = 4, kConnecting = 8;
constexpr SetBits due_if(bool due, SetBits bit) { return due ? bit : 0; }

/// The sets of a context. Because a session that is missing from a set hangs, there is a rule:
///
/// - Every event of a session (a completion, a submission, memory that was freed) begins with touch(). Every
///   operation on a session outside of its turn ends with Context::keep().
/// - A turn removes each session that it visits from the set. Then keep() adds the session to every set that
///   Session::due() names. A session with nothing to do is therefore in no set.
/// - Three groups have queues of their own: bulk data (flow.h), requests that are being fetched, and calls
///   that wait for memory (Shared).
///
/// Context::forgotten() checks this rule. Tests call it after each turn.
struct SessionSets {
  SessionSet touched{kTouched};  ///< sessions with work for the next finish_turn()
  SessionSet timed{kTimed};      ///< sessions with a running time limit, see Session::due()
  SessionSet holding{
      kHolding};  ///< sessions with cancelled calls that are pending release, or with bulk data to move
  SessionSet connecting{kConnecting};  ///< sessions that are connecting

  /// See SessionSet::reserve().
  void reserve(std::size_t sessions) {
    for (SessionSet* set : {&touched, &timed, &holding, &connecting}) set->reserve(sessions);
  }
  /// Returns the number of entries in all sets, including those of sessions that have ended. This is for
  /// tests.
  std::size_t entries() const {
    return touched.numbers().size() + timed.numbers().size() + holding.numbers().size() +
           connecting.numbers().size();
  }
  void put(SetBits due, SetBits& in, std::uint32_t number) {
    if ((due & kTouched) != 0) touched.add(in, number);
    if ((due & kTimed) != 0) timed.add(in, number);
    if ((due & kHolding) != 0) holding.add(in, number);
    if ((due & kConnecting) != 0) connecting.add(in, number);
  }
};

}  // namespace rdma_rpc::session
