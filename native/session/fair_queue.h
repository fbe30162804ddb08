// Implements deficit round robin, which decides which member moves bulk data next, and how many bytes. A
// context has two such queues of its sessions, and a session has two such queues of its calls. One queue is
// for READs and one is for WRITEs, because these wait for different resources. This file is used by Flow and
// ServerEndpoint, on the context's thread.
//
// A member gets a quantum of credit when it reaches the head of the queue, and moves bytes while it has
// credit left. The last request of a member may exceed the credit; the excess is subtracted from the member's
// next quantum. In the long run all members therefore move the same number of bytes, even with very small
// requests. A member waits for at most one quantum and one request of each other member.
#pragma once

#include <cstddef>
#include <cstdint>

#include "session/limits.h"

namespace rdma_rpc::session {

/// The result of a member's turn, which is its time at the head of the queue.
enum class Moved : std::uint8_t {
  all,    ///< it has nothing more to move, and leaves the queue
  share,  ///< it has moved its quantum; the next member comes to the head
  stuck,  ///< it waits for a resource of its own; other members continue
  halt,   ///< it waits for a resource that all members need; the queue stops, and later continues with this
          ///< member
};

class FairQueue {
 public:
  /// A member of a queue. A member is embedded in the object that waits, so the queue allocates nothing. A
  /// member leaves the queue when it is destroyed.
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

  /// Appends a member without credit; does nothing when the member is already queued. serve() passes `id` to
  /// `move`.
  void join(Member& member, std::uint32_t id) {
    if (member.waits()) return;
    member.queue_ = this;
    member.id_ = id;
    member.credit_ = 0;
    append(member);
    ++size_;
  }

  /// Lets members move in turn until none can move. `move(id, credit)` subtracts the moved bytes from the
  /// credit. `move` may destroy or remove the member, and its result is then ignored.
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
  Member* served_ = nullptr;  ///< the member at the head of the queue; null once that member has left
  std::size_t size_ = 0;
};

}  // namespace rdma_rpc::session
