// The completion queue: polls its queue pairs in turn, and sleeps and wakes. Completions wait in their queue
// pairs, so it never overruns, whatever the number of entries asked for. Used on the device's thread.
//
// It watches a few of them, those that were active last: it looks into their rings with each poll, and their
// peers have nothing more to do than to write there. The peers of all others announce what they write
// (announcements.h), and who has announced something is on a list until it has been polled empty. So what a
// poll costs does not depend on how many queue pairs there are. By descriptors all of them are watched.
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
  /// Kept in each queue pair.
  struct Turns {
    QueuePair *next = nullptr, *before = nullptr;  ///< on the list
    bool listed = false, watched = false;
    bool active = false;  ///< has had completions since the hand came by
  };

  CompletionQueue(Device& device, std::uint32_t poller, UniqueFd pipe_read, UniqueFd pipe_write);
  ~CompletionQueue() override;

  std::size_t poll(std::span<Wc> out) override;
  bool arm() override;
  void acknowledge() override;
  int fd() const override { return reactor_ ? reactor_->fd() : pipe_read_.get(); }
  bool peer_shares_cpu() const override;

  /// Room for a short message until the next poll(), for Wc::apart. Null: it has been given away.
  std::byte* apart(std::size_t bytes) {
    if (bytes > apart_.size() - apart_bytes_) return nullptr;
    return apart_.data() + std::exchange(apart_bytes_, apart_bytes_ + bytes);
  }

  std::uint32_t poller() const { return poller_index_; }
  std::uint32_t pipe_serial() const { return pipe_serial_; }
  /// The end of the pipe that peers open.
  int doorbell_fd() const { return pipe_write_.get(); }
  /// There may be something for poll() in this queue pair that nobody announces: completions that are made
  /// here (a request that is done, a flush), what has come before it was connected.
  void note(QueuePair& qp);
  /// The next poll() looks at it.
  void list(QueuePair& qp);

  // By descriptors.
  /// False: the system refuses.
  bool watch_lines();
  Reactor& reactor() { return *reactor_; }
  /// Peers with this token are led here from now on. Empty, or why not.
  std::string open_acceptor(Token* token);
  /// So many queue pairs more, or fewer, are connecting: their control connections are looked at with each
  /// poll.
  void note_handshake(int more) { handshakes_ += more; }

  void add(QueuePair& qp);
  void remove(QueuePair& qp);
  /// Queue pairs that polls have looked at, counting on: as many as were watched or had something to say.
  std::uint64_t looked_at() const { return looked_at_; }

 private:
  /// Its own pipe among the control connections: acknowledge() reads it when it has been rung.
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
  void wake();

  Device& device_;
  std::uint32_t poller_index_;
  const std::uint32_t pipe_serial_;
  Poller& poller_;
  UniqueFd pipe_read_, pipe_write_;
  std::vector<QueuePair*> watched_;
  std::size_t next_ = 0;            ///< of those, and after them the list: whose turn it is
  std::size_t hand_ = 0;            ///< of those: who is looked at next, whether it is still active
  QueuePair* candidate_ = nullptr;  ///< active, and not watched
  QueuePair *first_ = nullptr, *last_ = nullptr;  ///< the list
  std::size_t listed_ = 0;                        ///< how many are on it
  std::size_t turn_left_ = 0;  ///< of those on it when its turn began: how many are still to be looked at
  std::uint64_t looked_at_ = 0;
  std::size_t apart_bytes_ = 0;  ///< of those given away since the last poll()
  std::array<std::byte, 32 * kInlineMax> apart_;
  bool armed_ = false;
  std::uint32_t sleeps_ = 0;
  std::uint32_t polls_ = 0;
  std::uint32_t cpu_ = ~0u;
  int handshakes_ = 0;
  OwnPipe own_pipe_;
  std::unique_ptr<Reactor> reactor_;  ///< by descriptors
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace rdma_rpc::fabric::shm
