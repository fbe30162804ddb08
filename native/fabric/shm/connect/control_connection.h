// Implements the control connection of shm-fd: a unix connection between two queue pairs that cannot open
// each other through /proc. The control connection carries wake-ups, and the descriptors of the memory that
// each side exposes. When the connection ends, the peer is gone. To open the connection, the active side
// connects to the address of the peer's sideband (docs/wire/fabrics.md §10). A queue pair owns this object
// and uses it on the device's thread.
//
// Each side has a socket of its own, so nothing that the peer does to its own descriptor, such as making it
// blocking, has an effect here. Received data is untrusted. This class checks the form of the notes, and the
// receiver of a descriptor checks the descriptor. Closing a descriptor can take as long as the peer likes,
// and so can closing a control connection with unread descriptors in it. Therefore another thread closes
// both.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fabric/connect_message.h"
#include "fabric/reactor.h"
#include "fabric/rights.h"

namespace rdma_rpc::fabric::shm {

/// First byte of each note after the connect message.
enum class Note : std::uint8_t {
  bell = 0,     ///< wakes the peer
  file = 1,     ///< the first byte of a FileNote, which arrives with a descriptor
  taken = 2,    ///< everything that the sender needs has arrived and is valid
  refused = 3,  ///< something that arrived is invalid; the sender of this note closes the connection
};
enum class FileKind : std::uint8_t { device = 1, queue_pair = 2, memory = 3 };
struct FileNote {
  Note note = Note::file;
  FileKind kind = FileKind::memory;
  std::uint16_t reserved = 0;  ///< must be 0
  std::uint32_t slot = 0;      ///< for memory: index in DeviceSegment::memories
  std::uint64_t serial = 0;    ///< serial of that entry
  std::uint64_t addr = 0;      ///< for memory: its address in the sender's process
  std::uint64_t bytes = 0;     ///< size of the memory
};
static_assert(sizeof(FileNote) == 32);

/// The owner of a control connection. In any of these callbacks it may close the control connection, but it
/// must not destroy it.
class ControlConnectionUser {
 public:
  virtual ~ControlConnectionUser() = default;
  /// Handles the end of the exchange of connect messages; descriptors may be sent from now on.
  virtual void on_open() = 0;
  virtual void on_file(const FileNote& note, ForeignFd file) = 0;
  virtual void on_taken() = 0;
  /// Handles the end of the connection. `why` is the reason, for an error text. `peer_went` is true when the
  /// peer has closed the connection, and everything that the peer sent has been read.
  virtual void on_lost(const std::string& why, bool peer_went) = 0;
};

class ControlConnection final : public EventHandler {
 public:
  ControlConnection(Reactor& reactor, ControlConnectionUser& user) : reactor_(reactor), user_(user) {}
  ~ControlConnection() override { close(); }

  /// Active side: connects to `path`. Returns "", or why the attempt could not even begin. `answers` is the
  /// token that the intended peer sends in its answer.
  std::string dial(const std::string& path, const Token& to, const Token& from, const Token& answers,
                   std::uint32_t timeout_ms);
  /// Passive side: takes over a connection whose peer has sent its connect message, and answers it.
  void welcome(UniqueFd fd, const Token& to, const Token& from);

  /// Both functions return false, and close the control connection, when the peer accepts no more bytes or is
  /// gone.
  bool send(const FileNote& note, int file);
  bool send(Note note);
  /// Wakes the peer. Has no effect while earlier bells are unread.
  void ring();
  /// Reads and handles what has arrived, without waiting.
  void receive();
  /// Reads and handles what has arrived, with one system call. Returns false when nothing has arrived or the
  /// control connection has ended.
  bool receive_once();
  /// Returns whether the connection has ended.
  bool ended() const { return !fd_; }
  /// Must be called when the connection attempt is over, whether it succeeded or failed. From then on the
  /// connection has no time limit.
  void cancel_timeout() { reactor_.cancel_timeout(*this); }
  /// Ends the connection because the peer sent something invalid.
  void refuse(const std::string& why);
  void close();

  void ready() override;
  void expired() override;

 private:
  void hear_answer();
  /// Works like recv(). Returns false when the connection was ended because of the descriptors that arrived
  /// with the bytes.
  bool hear(void* bytes, std::size_t room, ssize_t* got);
  void take(const std::byte* bytes, std::size_t count);
  void carry_out();
  void lose(const std::string& why, bool peer_went = false);

  Reactor& reactor_;
  ControlConnectionUser& user_;
  ForeignFd fd_;
  bool open_ = false;
  Token from_{}, answers_{};
  /// Bytes of the peer's answer, and later of a note that has arrived only in part.
  std::array<std::byte, kConnectMessageBytes> received_;
  std::size_t have_ = 0;
  std::vector<ForeignFd> files_;  ///< in order of arrival; each descriptor waits for its note
};

}  // namespace rdma_rpc::fabric::shm
