// A set of sessions of a context, such as those with running time limits. A turn visits the sessions of the
// sets only, so its cost depends on the number of active sessions. Sessions add themselves; the context
// visits them. On the context's thread.
#pragma once

#include <cstdint>
#include <vector>

namespace rdma_rpc::session {

/// Which sets a session is in, a bit each. Kept by the session.
using SetBits = std::uint32_t;

class SessionSet {
 public:
  explicit SessionSet(SetBits bit) : bit_(bit) {}

  /// Nothing when it is in already.
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
  /// Numbers, in the order in which they came. Some may be of sessions that are gone.
  const std::vector<std::uint32_t>& numbers() const { return numbers_; }

  /// Takes each one out that `find` still knows, and calls `visit(session)`, which may put it in again.
  /// Returns how many those were.
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

/// The sets of a context. The rule, since a session that is missing from one hangs:
///
/// - Whatever happens to a session (a completion, a submission, memory that came free) begins with touch().
///   What is done to a session beside its turn ends with Context::keep().
/// - A turn takes out each session that it looks at, and then keep() puts it into every set that it belongs
///   to by what it has still to do: Session::due() says which. So a session leaves when it has nothing to do.
/// - Bulk data has queues of its own (flow.h), and so have requests that are fetched, and calls that wait for
///   memory (Shared).
///
/// Context::forgotten() is this rule as a check, which tests make after each turn.
struct SessionSets {
  SessionSet touched{kTouched};  ///< finish_turn() is to look at them: something has happened, or waits
  SessionSet timed{kTimed};      ///< a time limit of theirs is running, see Session::due()
  SessionSet holding{
      kHolding};  ///< sessions with cancelled calls that are pending release, or with bulk data to move
  SessionSet connecting{kConnecting};  ///< they are connecting

  /// See SessionSet::reserve().
  void reserve(std::size_t sessions) {
    for (SessionSet* set : {&touched, &timed, &holding, &connecting}) set->reserve(sessions);
  }
  /// Numbers in all of them, those of sessions that have ended included. For tests.
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
