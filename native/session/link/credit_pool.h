// The credit pool decides how many frames the peer of each session may send, when all sessions receive from
// shared receives. The credits of a session consist of the credits that its peer may still use, and of the
// used receives that are not reposted yet. Each session has a number of guaranteed credits, so that no
// session starves. Additional credits are granted while some are left, by the rule of dynamic thresholds
// (Choudhury and Hahne, 1998): a session may have at most a few times as many additional credits as are left.
// Therefore a session that takes as many credits as possible leaves some to each session that opens later,
// and the granted credits never exceed the receives. This file is pure arithmetic. SharedReceives uses it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "session/limits.h"

namespace rdma_rpc::session {

class CreditPool {
 public:
  struct Account {
    std::uint32_t certain = 0, most = 0;
    std::uint32_t held = 0;
    std::uint32_t beyond() const { return std::max(held, certain) - certain; }
  };

  /// Adds newly posted receives.
  void grow(std::uint32_t receives) { receives_ += receives; }
  /// Removes receives that are no longer posted because the device has refused them. Credits that were
  /// granted before cannot be revoked, but no more credits are granted until the receives are posted again.
  void shrink(std::uint32_t receives) { receives_ -= receives; }
  std::uint32_t receives() const { return receives_; }
  /// Returns the number of credits that no session holds and that are guaranteed to no session.
  std::uint32_t left() const { return receives_ - std::min(receives_, committed_); }

  /// Opens an account with its guaranteed credits. Returns false when not enough are left.
  bool open(Account& account, std::uint32_t certain, std::uint32_t most) {
    if (left() < certain) return false;
    committed_ += certain;
    account = {certain, most, certain};
    return true;
  }
  void close(Account& account) {
    committed_ -= std::max(account.held, account.certain);
    account = {};
  }

  /// Returns how many of the `wanted` credits the account gets.
  std::uint32_t take(Account& account, std::uint32_t wanted) {
    wanted = std::min(wanted, account.most - account.held);
    const std::uint32_t certain = std::min(wanted, account.certain - std::min(account.held, account.certain));
    account.held += certain;
    const std::uint32_t limit = kCreditShare * left(), beyond = account.beyond();
    // After that, the account's additional credits must not exceed its share of the credits that are left.
    const std::uint32_t more =
        limit <= beyond ? 0 : std::min(wanted - certain, (limit - beyond) / (1 + kCreditShare));
    account.held += more;
    committed_ += more;
    return certain + more;
  }
  void give_back(Account& account, std::uint32_t count) {
    const std::uint32_t beyond = account.beyond();
    account.held -= count;
    committed_ -= beyond - account.beyond();
  }

 private:
  std::uint32_t receives_ = 0;
  std::uint32_t committed_ = 0;  ///< credits that are held by an account, or guaranteed to it
};

}  // namespace rdma_rpc::session
