// See control_connection.h.
#include "fabric/shm/connect/control_connection.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "fabric/system_limit.h"

namespace rdma_rpc::fabric::shm {
namespace {

/// Limit of descriptors per read. Each note brings one descriptor.
constexpr std::size_t kFilesPerRead = 4;
/// Limit of reads per event-loop iteration, so that a peer that sends without end does not delay the others.
constexpr int kReadsPerIteration = 32;

}  // namespace

std::string ControlConnection::dial(const std::string& path, const Token& to, const Token& from,
                                    const Token& answers, std::uint32_t timeout_ms) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof name.sun_path)
    return "shm: the peer's path is empty or too long for a unix socket";
  std::memcpy(name.sun_path, path.data(), path.size());
  fd_ = ForeignFd(UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
  // (connect() on a unix socket succeeds at once, or fails because the listener's backlog is full.)
  if (!fd_ || ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) {
    std::string why = "shm: " + path + " cannot be reached a second time: " + system_refusal(errno);
    fd_.reset();
    return why;
  }
  from_ = from;
  answers_ = answers;
  const ConnectMessage hello = make_connect_message(ConnectKind::hello, to, from);
  if (!send_now(fd_.get(), &hello, sizeof hello) || !reactor_.add(*this, fd_.get(), EPOLLIN)) {
    std::string why = "shm: " + path + " does not accept the first message: " + system_refusal(errno);
    fd_.reset();
    return why;
  }
  reactor_.set_timeout(*this, timeout_ms);
  return {};
}

void ControlConnection::welcome(UniqueFd fd, const Token& to, const Token& from) {
  fd_ = ForeignFd(std::move(fd));
  // The peer sends no descriptor before the answer, and the code that accepted the connection may have made
  // the kernel refuse descriptors.
  allow_rights(fd_.get());
  const ConnectMessage answer = make_connect_message(ConnectKind::welcome, to, from);
  // Another part of the process has opened this descriptor, so its flags are unknown.
  const bool ours = ::fcntl(fd_.get(), F_SETFL, O_NONBLOCK) == 0 && reactor_.add(*this, fd_.get(), EPOLLIN);
  if (!ours || !send_now(fd_.get(), &answer, sizeof answer))
    return lose("it was lost before this side could answer the peer");
  open_ = true;
  user_.on_open();
}

bool ControlConnection::send(const FileNote& note, int file) {
  if (!fd_) return false;
  FileNote copy = note;
  iovec bytes{&copy, sizeof copy};
  union {
    cmsghdr align;
    char bytes[CMSG_SPACE(sizeof file)];
  } buffer{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = buffer.bytes;
  message.msg_controllen = CMSG_SPACE(sizeof file);
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(part), &file, sizeof file);
  const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(sizeof copy)) return true;
  lose("the peer accepts no descriptor: " + system_refusal(errno));
  return false;
}

bool ControlConnection::send(Note note) {
  if (!fd_) return false;
  if (send_now(fd_.get(), &note, sizeof note)) return true;
  lose("the peer does not accept a message: " + system_refusal(errno));
  return false;
}

void ControlConnection::ring() {
  const Note bell = Note::bell;
  // A failure is ignored: the peer either has more unread bytes than fit, or is gone. In both cases the peer
  // needs no bell.
  if (fd_) [[maybe_unused]]
    const bool sent = send_now(fd_.get(), &bell, sizeof bell);
}

void ControlConnection::ready() {
  if (open_) return receive();
  hear_answer();
}

bool ControlConnection::hear(void* bytes, std::size_t room, ssize_t* got) {
  if (being_closed() > kClosingMax) {
    refuse("too many descriptors sent by peers are still waiting to be closed");
    return false;
  }
  const std::size_t had = files_.size();
  bool cut = false;
  *got = receive_with_rights(fd_.get(), bytes, room, &files_, &cut);
  const int error = errno;
  if (cut)
    refuse("descriptors from the peer were lost because this process has no free descriptor");
  else if (files_.size() - had > kFilesPerRead)
    refuse("the peer has sent too many descriptors with one message");
  errno = error;
  return static_cast<bool>(fd_);
}

void ControlConnection::hear_answer() {
  // Reads only the bytes of the answer, because descriptors arrive with the bytes behind it.
  ssize_t got = 0;
  if (!hear(received_.data() + have_, received_.size() - have_, &got)) return;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return lose("the peer has closed it without an answer");
  if (!files_.empty())
    return refuse("the peer's answer came with a descriptor, which only later messages may have");
  have_ += static_cast<std::size_t>(got);
  if (have_ < received_.size()) return;
  ConnectMessage answer;
  std::memcpy(&answer, received_.data(), sizeof answer);
  have_ = 0;
  if (const char* why = why_not_connect_message(answer)) return lose(why);
  if (answer.kind != ConnectKind::welcome) {
    return lose(
        "no process there has that queue pair: the path leads to another server, or the peer has ended");
  }
  if (!same(answer.to, from_) || !same(answer.from, answers_))
    return lose("the path leads to another peer than the one that was dialled");
  open_ = true;
  user_.on_open();
  receive();
}

void ControlConnection::receive() {
  for (int i = 0; i < kReadsPerIteration && receive_once(); ++i) {
  }
}

bool ControlConnection::receive_once() {
  std::byte bytes[256];
  ssize_t got = 0;
  do {
    if (!fd_ || !open_ || !hear(bytes, sizeof bytes, &got)) return false;
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return false;
  if (got < 0 && errno != ECONNRESET) return lose(system_refusal(errno)), false;
  if (got <= 0) return lose("the peer has ended, or closed it", true), false;
  take(bytes, static_cast<std::size_t>(got));
  // (When a note has arrived only in part, its descriptor may be here already.)
  if (files_.size() > (have_ == 0 ? 0u : 1u)) refuse("the peer has sent a descriptor that it has not named");
  return true;
}

void ControlConnection::take(const std::byte* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count && fd_; ++i) {
    received_[have_++] = bytes[i];
    const auto note = static_cast<Note>(received_[0]);
    if (note > Note::refused) return refuse("the peer has sent a message of an unknown kind");
    if (have_ == (note == Note::file ? sizeof(FileNote) : 1)) carry_out();
  }
}

void ControlConnection::carry_out() {
  have_ = 0;
  switch (static_cast<Note>(received_[0])) {
    case Note::bell:
      return;
    case Note::taken:
      return user_.on_taken();
    case Note::refused:
      return lose("the peer has refused the memory that this side has sent");
    case Note::file:
      break;
  }
  FileNote note;
  std::memcpy(&note, received_.data(), sizeof note);
  if (note.reserved != 0) return refuse("the peer has sent a message whose reserved bytes are not 0");
  if (files_.empty()) return refuse("the peer has named a descriptor that it has not sent");
  ForeignFd file = std::move(files_.front());
  files_.erase(files_.begin());
  user_.on_file(note, std::move(file));
}

void ControlConnection::refuse(const std::string& why) {
  const Note note = Note::refused;
  if (fd_) [[maybe_unused]]
    const bool sent = send_now(fd_.get(), &note, sizeof note);
  lose(why);
}

void ControlConnection::lose(const std::string& why, bool peer_went) {
  if (!fd_) return;
  close();
  user_.on_lost(why, peer_went);
}

void ControlConnection::close() {
  if (!fd_) return;
  reactor_.remove(*this, fd_.get());
  fd_.reset();
  files_.clear();
}

void ControlConnection::expired() { lose("the peer has not answered in time"); }

}  // namespace rdma_rpc::fabric::shm
