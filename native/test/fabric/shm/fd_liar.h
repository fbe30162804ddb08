// Opens a shm-fd queue pair that waits for its peer, and the far end of its control connection, which the
// test operates. Tests of hostile peers use this file.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabric/shm/connect/control_connection.h"
#include "fabric/shm/entrance.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/peers.h"

namespace rdma_rpc::fabric::test {

using shm::FileKind;
using shm::FileNote;
using shm::Note;

/// A shm-fd device with one passive queue pair that expects the queue pair of a liar.
class Victim {
 public:
  Victim() : device_(open_shm_device({.by_descriptors = true}, &error_)) {
    cq_ = device_->create_cq(16);
    qp_ = device_->create_qp(*cq_, {.send_wr_max = 8, .recv_wr_max = 8, .active = false}, &error_);
    EXPECT_TRUE(make_token(&liar_.device_token));
    EXPECT_TRUE(make_token(&liar_.qp_token));
    liar_.magic = shm::kMagic;
    liar_.version = kShmVersion;
    liar_.qp_num = 1;
    liar_.receive_slots = 8;
    liar_.epoch_cells = 8;
    liar_.by_descriptors = 1;
    const auto* bytes = reinterpret_cast<const std::byte*>(&liar_);
    EXPECT_EQ(qp_->connect({bytes, sizeof liar_}), "");
    EXPECT_EQ(qp_->state(), QpState::rtr);
    std::memcpy(&own_, qp_->local_address().data(), sizeof own_);
  }
  QueuePair& qp() { return *qp_; }
  CompletionQueue& cq() { return *cq_; }
  const shm::AddressBlob& liar() const { return liar_; }
  const shm::AddressBlob& own() const { return own_; }
  DeviceCounters counters() const { return device_->counters(); }
  /// Polls until the queue pair has left RTR. Returns its state.
  QpState settled() {
    const auto end = std::chrono::steady_clock::now() + kTimeout;
    Wc wc;
    while (qp_->state() == QpState::rtr && std::chrono::steady_clock::now() < end) cq_->poll({&wc, 1});
    return qp_->state();
  }
  void end() { qp_.reset(); }

 private:
  std::string error_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CompletionQueue> cq_;
  std::unique_ptr<QueuePair> qp_;
  shm::AddressBlob liar_{}, own_{};
};

/// The far end of a control connection, operated by the test.
class Liar {
 public:
  explicit Liar(Victim& victim) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fd_ = UniqueFd(ends[0]);
    const UniqueFd theirs(ends[1]);
    const ConnectMessage hello =
        make_connect_message(ConnectKind::hello, victim.own().qp_token, victim.liar().qp_token);
    EXPECT_EQ(hand_off(theirs.get(), std::as_bytes(std::span(&hello, 1))), "");
    Wc wc;
    victim.cq().poll({&wc, 1});  // accepts the connection, and sends the victim's memories
  }
  /// Sends `files` with the bytes of `what`.
  void send(const void* what, std::size_t bytes, std::vector<int> files) const {
    iovec part{const_cast<void*>(what), bytes};
    alignas(cmsghdr) char buffer[CMSG_SPACE(253 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!files.empty()) {
      message.msg_control = buffer;
      message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), files.data(), files.size() * sizeof(int));
    }
    EXPECT_EQ(::sendmsg(fd_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  }
  void send(const FileNote& note, std::vector<int> files) const {
    send(&note, sizeof note, std::move(files));
  }
  void send(Note note) const { send(&note, sizeof note, {}); }
  void hang_up() { fd_.reset(); }
  /// Returns whether the last byte received is the refusal.
  bool was_refused() const {
    char bytes[4096];
    char last = 0;
    for (ssize_t got; (got = ::recv(fd_.get(), bytes, sizeof bytes, 0)) > 0;) last = bytes[got - 1];
    return last == static_cast<char>(Note::refused);
  }

 private:
  UniqueFd fd_;
};

inline constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;

inline UniqueFd memory_file(std::size_t bytes, int seals) {
  UniqueFd fd(::memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  if (seals != 0) {
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}
template <class T>
void put(const UniqueFd& fd, const T& what) {
  EXPECT_EQ(::pwrite(fd.get(), &what, sizeof what, 0), static_cast<ssize_t>(sizeof what));
}

inline FileNote note_of(FileKind kind, std::uint64_t bytes = 0) {
  FileNote note;
  note.kind = kind;
  note.bytes = bytes;
  return note;
}
/// Creates the same descriptor as an honest peer.
inline UniqueFd device_file(const Victim& victim, int seals = kSealed) {
  UniqueFd fd = memory_file(sizeof(shm::DeviceSegment), 0);
  put(fd, shm::Header{shm::kMagic, kShmVersion, victim.liar().device_token, shm::kShape});
  if (seals != 0) {
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}
inline UniqueFd queue_pair_file(const Victim& victim, std::size_t more = 0, int seals = kSealed) {
  UniqueFd fd = memory_file(shm::qp_segment_bytes(victim.liar().receive_slots) + more, 0);
  put(fd, victim.liar());
  if (seals != 0) {
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}

}  // namespace rdma_rpc::fabric::test
