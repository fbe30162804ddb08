// How many frames each session may be sent, where all of them are received out of one pool. A grant is
// credits: what a session's peer may still send, and receives that have been used and are not posted again.
// Some are for certain, so that nobody starves; more are given as long as there are some, by the rule of
// dynamic thresholds (Choudhury and Hahne, 1998): nobody has more of these than a few times what is left. So
// one session that takes all it can, or holds what it has, leaves some to each that comes after it, and what
// is given out never exceeds what is there. Pure arithmetic; used by SharedReceives.
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

  /// So many receives more are posted.
  void grow(std::uint32_t receives) { receives_ += receives; }
  /// Takes away receives that are no longer posted, since the device has refused them. What was granted
  /// before cannot be taken back, but no more is granted until they are there again.
  void shrink(std::uint32_t receives) { receives_ -= receives; }
  std::uint32_t receives() const { return receives_; }
  /// Neither held by anybody nor for certain for somebody.
  std::uint32_t left() const { return receives_ - std::min(receives_, committed_); }

  /// It begins with what it has for certain. False: there are not so many left.
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

  /// So many of `wanted` it has now more.
  std::uint32_t take(Account& account, std::uint32_t wanted) {
    wanted = std::min(wanted, account.most - account.held);
    const std::uint32_t certain = std::min(wanted, account.certain - std::min(account.held, account.certain));
    account.held += certain;
    const std::uint32_t limit = kCreditShare * left(), beyond = account.beyond();
    // What it then has is no more than its share of what is then left.
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
  std::uint32_t committed_ = 0;  ///< held, or for certain for somebody
};

}  // namespace rdma_rpc::session
