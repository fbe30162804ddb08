// The completion queue polls its queue pairs in turn, sleeps and wakes. Completions wait in their queue
// pairs, so the queue never overruns, independent of the number of entries that was requested. This code runs
// on the device's thread.
//
// The queue watches the few queue pairs that were active last. Each poll looks into their rings, so their
// peers only need to write there. The peers of all other queue pairs announce what they write
// (announcements.h). A queue pair with an announcement is on a list until it has been polled empty. The cost
// of a poll therefore does not depend on the number of queue pairs. On shm-fd all queue pairs are watched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/acceptor.h"
#include "fabric/fabric.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory/segment.h"

namespace rdma_rpc::fabric::shm {

class Device;
class QueuePair;

class CompletionQueue final : public fabric::CompletionQueue {
 public:
  /// State that each queue pair keeps for its completion queue.
  struct Turns {
    QueuePair *next = nullptr, *before = nullptr;  ///< neighbours on the list
    bool listed = false, watched = false;
    bool active = false;  ///< has had completions since move_hand() last passed it
  };

  CompletionQueue(Device& device, std::uint32_t poller, UniqueFd pipe_read, UniqueFd pipe_write);
  ~CompletionQueue() override;

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override { return arm(false); }
  bool arm_solicited() override { return arm(true); }
  void acknowledge() override;
  int fd() const override { return reactor_ ? reactor_->fd() : pipe_read_.get(); }
  bool peer_shares_cpu() const override;

  /// Returns room for a short message until the next poll(), for Wc::apart. Returns null when no room is
  /// left.
  std::byte* apart(std::size_t bytes) {
    if (bytes > apart_.size() - apart_bytes_) return nullptr;
    return apart_.data() + std::exchange(apart_bytes_, apart_bytes_ + bytes);
  }

  std::uint32_t poller() const { return poller_index_; }
  std::uint32_t pipe_serial() const { return pipe_serial_; }
  /// Returns the end of the pipe that peers open.
  int doorbell_fd() const { return pipe_write_.get(); }
  /// Must be called when poll() may find something in this queue pair that neither side announces. Such an
  /// entry may be a completion that this side made (a completed request, a flush), or a message that arrived
  /// before the queue pair was connected.
  void note(QueuePair& qp);
  /// Does the same as note() after a failure, which also wakes a user that waits for solicited messages.
  void note_failed(QueuePair& qp);
  /// Puts the queue pair on the list, so that the next poll() looks at it.
  void list(QueuePair& qp);

  // The following members are for shm-fd.
  /// Watches the control connections. Returns false when the system refuses.
  bool watch_lines();
  Reactor& reactor() { return *reactor_; }
  /// Makes this queue the receiver of connections with a certain token, which is set in `token`. Returns "",
  /// or why that failed.
  std::string open_acceptor(Token* token);
  /// Changes the number of queue pairs that are connecting. While it is not 0, each poll looks at the control
  /// connections.
  void note_handshake(int more) { handshakes_ += more; }

  void add(QueuePair& qp);
  void remove(QueuePair& qp);
  /// Total number of queue pairs that polls have looked at, both watched and listed.
  std::uint64_t looked_at() const { return looked_at_; }

 private:
  /// The queue's own pipe, which is watched together with the control connections. acknowledge() reads it
  /// when it has been rung.
  struct OwnPipe final : EventHandler {
    bool rung = false;
    void ready() override { rung = true; }
    void expired() override {}
  };
  void note_cpu();
  std::size_t poll(QueuePair& qp, std::span<Wc> out);
  std::size_t poll_listed(std::span<Wc> out, std::size_t share, bool* more);
  void unlist(QueuePair& qp);
  void watch(QueuePair& qp);
  void stop_watching(std::size_t index);
  void move_hand();
  bool arm(bool solicited_only);
  void wake();

  Device& device_;
  std::uint32_t poller_index_;
  const std::uint32_t pipe_serial_;
  Poller& poller_;
  UniqueFd pipe_read_, pipe_write_;
  std::vector<QueuePair*> watched_;
  std::size_t next_ = 0;            ///< index in watched_ of the next to poll; the list is polled last
  std::size_t hand_ = 0;            ///< index in watched_ of the next queue pair to be checked for activity
  QueuePair* candidate_ = nullptr;  ///< an active queue pair that is not watched
  QueuePair *first_ = nullptr, *last_ = nullptr;  ///< ends of the list
  std::size_t listed_ = 0;                        ///< length of the list
  std::size_t turn_left_ = 0;  ///< number of listed queue pairs that are left to poll in this round
  std::uint64_t looked_at_ = 0;
  std::size_t apart_bytes_ = 0;  ///< bytes of apart_ in use since the last poll()
  std::array<std::byte, 32 * kInlineMax> apart_;
  bool armed_ = false;            ///< armed for all completions
  bool armed_solicited_ = false;  ///< armed for solicited messages and failures
  std::uint32_t sleeps_ = 0;      ///< number of the last sleep, even
  std::uint32_t polls_ = 0;
  std::uint32_t cpu_ = ~0u;
  int handshakes_ = 0;
  OwnPipe own_pipe_;
  std::unique_ptr<Reactor> reactor_;  ///< for shm-fd
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace rdma_rpc::fabric::shm
