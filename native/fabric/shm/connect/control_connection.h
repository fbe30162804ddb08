// The unix connection between two queue pairs that do not open each other through /proc: what one side shows
// goes over it as descriptors, and so do wake-ups; its end says that the peer has gone. It is made at the
// address of the peer's sideband, by the active side (docs/wire/fabrics.md §10). Owned by
// a queue pair, on the device's thread.
//
// Each side has a socket of its own, so nothing that the peer does to its descriptor (such as making it
// block) is seen here. What comes is untrusted: its shape is checked here, the descriptors by who gets them.
// Closing one, or a control connection with unread ones in it, can take as long as the peer likes: another
// thread does that.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fabric/greeting.h"
#include "fabric/reactor.h"
#include "fabric/rights.h"

namespace rdma_rpc::fabric::shm {

/// First byte of what is said after the greeting.
enum class Note : std::uint8_t {
  bell = 0,     ///< wake up
  file = 1,     ///< the first byte of a FileNote; a descriptor comes with it
  taken = 2,    ///< what the sender needs has come, and is as it should be
  refused = 3,  ///< it is not; the sender closes
};
enum class FileKind : std::uint8_t { device = 1, queue_pair = 2, memory = 3 };
struct FileNote {
  Note note = Note::file;
  FileKind kind = FileKind::memory;
  std::uint16_t reserved = 0;  ///< 0
  std::uint32_t slot = 0;      ///< memory: in DeviceSegment::memories
  std::uint64_t serial = 0;    ///< the same entry's
  std::uint64_t addr = 0;      ///< memory: where the sender has it
  std::uint64_t bytes = 0;     ///< its size
};
static_assert(sizeof(FileNote) == 32);

/// Who has a control connection. It may end the control connection in any of these, but not destroy it.
class ControlConnectionUser {
 public:
  virtual ~ControlConnectionUser() = default;
  /// Greeted: descriptors may be sent.
  virtual void on_open() = 0;
  virtual void on_file(const FileNote& note, ForeignFd file) = 0;
  virtual void on_taken() = 0;
  /// It has ended. `why`: in words. `peer_went`: the peer has closed it, and everything that it sent has been
  /// heard.
  virtual void on_lost(const std::string& why, bool peer_went) = 0;
};

class ControlConnection final : public EventHandler {
 public:
  ControlConnection(Reactor& reactor, ControlConnectionUser& user) : reactor_(reactor), user_(user) {}
  ~ControlConnection() override { close(); }

  /// Active side: connects at `path`. Empty, or why that cannot even begin.
  /// `answers`: what whoever is meant calls itself.
  std::string dial(const std::string& path, const Token& to, const Token& from, const Token& answers,
                   std::uint32_t timeout_ms);
  /// Passive side: a connection that has said hello. Answers it.
  void welcome(UniqueFd fd, const Token& to, const Token& from);

  /// False, and the control connection ends: the peer takes no more, or has gone.
  bool send(const FileNote& note, int file);
  bool send(Note note);
  /// One that already has unread bells needs no further one.
  void ring();
  /// Looks at what has come, without waiting.
  void receive();
  /// With one system call. False: nothing has come, or the control connection has ended.
  bool receive_once();
  /// Nothing more will come.
  bool ended() const { return !fd_; }
  /// Connected, for better or worse: it may take as long as it likes from now on.
  void cancel_timeout() { reactor_.cancel_timeout(*this); }
  /// Ends it because of what the peer has sent.
  void refuse(const std::string& why);
  void close();

  void ready() override;
  void expired() override;

 private:
  void hear_answer();
  /// As recv(). False: it has ended, for what came with the bytes.
  bool hear(void* bytes, std::size_t room, ssize_t* got);
  void take(const std::byte* bytes, std::size_t count);
  void carry_out();
  void lose(const std::string& why, bool peer_went = false);

  Reactor& reactor_;
  ControlConnectionUser& user_;
  ForeignFd fd_;
  bool open_ = false;
  Token from_{}, answers_{};
  /// Of the greeting's answer, then of a note that has come in part.
  std::array<std::byte, kGreetingBytes> said_;
  std::size_t have_ = 0;
  std::vector<ForeignFd> files_;  ///< in the order in which they came, each waits for its note
};

}  // namespace rdma_rpc::fabric::shm
