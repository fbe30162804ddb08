// Deficit round robin: decides who moves bulk data next, and how many bytes. A context has two such queues of
// its sessions, and a session has two of its calls, since READs and WRITEs wait for different resources. Used
// by Flow and ServerEndpoint, on the context's thread.
//
// Each member that comes to the head gets a quantum, and moves bytes while it has credit left. Its last
// request may exceed the credit, and is paid for in its next turn. So in the long run all members move the
// same number of bytes, however small their requests are, and no member waits for more than a quantum and one
// request of each other member.
#pragma once

#include <cstddef>
#include <cstdint>

#include "session/limits.h"

namespace rdma_rpc::session {

/// The result of a member's turn.
enum class Moved : std::uint8_t {
  all,    ///< it has nothing more to move, and leaves
  share,  ///< its quantum: the next one is at the head
  stuck,  ///< it waits for something of its own: others go on
  halt,   ///< it waits for something that all wait for: it goes on later where it stands
};

class FairQueue {
 public:
  /// A member of a queue: embedded in the object that waits, so that nothing is allocated here. It leaves the
  /// queue when it is destroyed.
  class Member {
   public:
    Member() = default;
    ~Member() { leave(); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    bool waits() const { return queue_ != nullptr; }
    void leave() {
      if (queue_ != nullptr) queue_->remove(*this);
    }

   private:
    friend class FairQueue;
    FairQueue* queue_ = nullptr;
    Member *next_ = nullptr, *previous_ = nullptr;
    std::int64_t credit_ = 0;
    std::uint32_t id_ = 0;
  };

  FairQueue() = default;
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;
  ~FairQueue() {
    while (head_ != nullptr) remove(*head_);
  }

  bool empty() const { return head_ == nullptr; }

  /// Appends a member without credit; does nothing when it is already queued. serve() passes `id` to `move`.
  void join(Member& member, std::uint32_t id) {
    if (member.waits()) return;
    member.queue_ = this;
    member.id_ = id;
    member.credit_ = 0;
    append(member);
    ++size_;
  }

  /// Lets members move in turn until none can. `move(id, credit)` subtracts the moved bytes from the credit.
  /// It may destroy or remove the member; its result is ignored then.
  template <class Move>
  void serve(Move&& move) {
    for (std::size_t stuck = 0; stuck < size_;) {
      Member& head = *head_;
      if (head.credit_ <= 0) head.credit_ += kQuantumBytes;
      Moved moved = Moved::share;
      if (std::int64_t credit = head.credit_; credit > 0) {
        served_ = head_;
        moved = move(head.id_, credit);
        if (served_ == nullptr) continue;
        served_ = nullptr;
        head.credit_ = credit;
      }
      if (moved == Moved::halt) return;
      stuck = moved == Moved::stuck ? stuck + 1 : 0;
      if (moved == Moved::all) {
        remove(head);
      } else {
        unlink(head);
        append(head);
      }
    }
  }

 private:
  void append(Member& member) {
    member.previous_ = tail_;
    member.next_ = nullptr;
    (tail_ != nullptr ? tail_->next_ : head_) = &member;
    tail_ = &member;
  }
  void unlink(Member& member) {
    (member.previous_ != nullptr ? member.previous_->next_ : head_) = member.next_;
    (member.next_ != nullptr ? member.next_->previous_ : tail_) = member.previous_;
  }
  void remove(Member& member) {
    unlink(member);
    member.queue_ = nullptr;
    if (served_ == &member) served_ = nullptr;
    --size_;
  }

  Member *head_ = nullptr, *tail_ = nullptr;
  Member* served_ = nullptr;  ///< whose turn it is, while it has not left
  std::size_t size_ = 0;
};

}  // namespace rdma_rpc::session
