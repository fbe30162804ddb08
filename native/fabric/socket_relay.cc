// See socket_relay.h.
#include "fabric/socket_relay.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fabric/detached_thread.h"

namespace rdma_rpc::fabric {
namespace {

constexpr std::size_t kBufferBytes = 16 * 1024;
constexpr std::size_t kStackBytes = 128 * 1024;

/// Bytes that were read from one side and have not been written to the other side yet.
struct Bytes {
  std::array<std::byte, kBufferBytes> room;
  std::size_t from = 0, to = 0;
  bool ended = false;  ///< the side sends nothing more
  bool empty() const { return from == to; }
};

struct Connection {
  ForeignFd far;
  UniqueFd near;
  /// This lock is held while the relay reads from `far`. Nothing is read after `taken` is set.
  std::mutex reading;
  bool taken = false;
  // Only the relay's thread uses these members.
  Bytes inward, outward;
  bool lost = false;
  // A mask is 0 while its socket is not watched. (Otherwise the hang-up of the socket would be reported again
  // and again.)
  std::uint32_t far_mask = EPOLLIN, near_mask = EPOLLIN;
};

struct Relay {
  std::mutex mutex;  ///< protects the two tables
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections;
  std::map<ino_t, std::uint64_t> of_end;  ///< by inode of the user's end of the socket pair
  std::uint64_t last = 0;
  UniqueFd epoll;
  bool running = false;
};
/// The relay lives as long as the process.
Relay& the_relay() {
  static Relay& only = *new Relay;
  return only;
}

bool watch(int operation, int fd, std::uint32_t events, std::uint64_t name) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = name;
  return ::epoll_ctl(the_relay().epoll.get(), operation, fd, &event) == 0;
}

void wait_for(int fd, std::uint64_t name, std::uint32_t* mask, std::uint32_t wanted) {
  if (*mask == wanted) return;
  watch(*mask == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, fd, wanted, name);
  *mask = wanted;
}

/// Reads only once; the next event-loop iteration reads the rest.
void hear(Connection& connection) {
  Bytes& bytes = connection.inward;
  std::vector<ForeignFd> files;
  bool cut = false;
  const std::lock_guard lock(connection.reading);
  if (connection.taken) return;
  const ssize_t got =
      being_closed() > kClosingMax
          ? 0
          : receive_with_rights(connection.far.get(), bytes.room.data(), kBufferBytes, &files, &cut);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (cut || !files.empty()) {
    connection.lost = true;
  } else if (got <= 0) {
    bytes.ended = true;
    ::shutdown(connection.near.get(), SHUT_WR);
  } else {
    bytes.from = 0;
    bytes.to = static_cast<std::size_t>(got);
  }
}

void hear_near(Connection& connection) {
  Bytes& bytes = connection.outward;
  const ssize_t got = ::recv(connection.near.get(), bytes.room.data(), kBufferBytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  bytes.from = 0;
  bytes.to = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got > 0) return;
  bytes.ended = true;
  ::shutdown(connection.far.get(), SHUT_WR);
}

/// Writes as many bytes as the socket accepts. A peer that has closed its side accepts nothing, but bytes
/// that it sent earlier may still have to be read.
void pass_on(Bytes& bytes, int to) {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(to, bytes.room.data() + bytes.from, bytes.to - bytes.from, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) bytes.ended = true;
    bytes.from = sent < 0 ? bytes.to : bytes.from + static_cast<std::size_t>(sent);
  }
}

/// Forwards the bytes that were written before this side closed, as far as the peer accepts them at once.
void say_the_rest(Connection& connection) {
  Bytes& bytes = connection.outward;
  for (pass_on(bytes, connection.far.get()); bytes.empty() && !bytes.ended;) {
    hear_near(connection);
    pass_on(bytes, connection.far.get());
  }
}

/// `name` is twice the connection's number, plus one for the connection's near end.
void step(std::uint64_t name, std::uint32_t events) {
  Relay& all = the_relay();
  std::shared_ptr<Connection> found;
  {
    const std::lock_guard lock(all.mutex);
    const auto at = all.connections.find(name >> 1);
    if (at == all.connections.end()) return;
    found = at->second;
  }
  Connection& one = *found;
  const bool near = (name & 1) != 0;
  bool taken;
  {
    const std::lock_guard lock(one.reading);
    taken = one.taken;
  }
  const bool gone = near && (events & EPOLLHUP) != 0;
  if (!taken) {
    if (near && one.outward.empty() && !one.outward.ended) hear_near(one);
    if (!near && one.inward.empty() && !one.inward.ended) hear(one);
    pass_on(one.inward, one.near.get());
    pass_on(one.outward, one.far.get());
    if (gone) say_the_rest(one);
  }
  const bool over = one.inward.ended && one.inward.empty() && one.outward.ended && one.outward.empty();
  if (gone || one.lost || over) {
    wait_for(one.far.get(), name & ~1ull, &one.far_mask, 0);
    wait_for(one.near.get(), name | 1, &one.near_mask, 0);
    const std::lock_guard lock(all.mutex);
    all.connections.erase(name >> 1);
    std::erase_if(all.of_end, [name](const auto& end) { return end.second == name >> 1; });
    return;
  }
  const auto wanted = [taken](const Bytes& in, const Bytes& out) -> std::uint32_t {
    if (taken) return 0;
    return (in.empty() && !in.ended ? std::uint32_t{EPOLLIN} : 0) |
           (out.empty() ? 0 : std::uint32_t{EPOLLOUT});
  };
  wait_for(one.far.get(), name & ~1ull, &one.far_mask, wanted(one.inward, one.outward));
  // The near end is always watched, because its hang-up ends the connection. epoll always reports a hang-up.
  wait_for(one.near.get(), name | 1, &one.near_mask, wanted(one.outward, one.inward) | EPOLLERR);
}

[[noreturn]] void run() {
  for (;;) {
    std::array<epoll_event, 64> events;
    const int count =
        ::epoll_wait(the_relay().epoll.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      step(event.data.u64, event.events);
    }
  }
}

bool start() {
  Relay& all = the_relay();
  if (all.running) return true;
  if (!all.epoll) all.epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!all.epoll) return false;
  errno = start_detached(kStackBytes, run);
  all.running = errno == 0;
  return all.running;
}

}  // namespace

UniqueFd relay_bytes(ForeignFd connection) {
  int ends[2];
  if (!connection || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    return {};
  UniqueFd end(ends[1]);
  const auto made = std::make_shared<Connection>();
  made->near = UniqueFd(ends[0]);
  made->far = std::move(connection);
  struct stat about {};
  if (::fstat(end.get(), &about) != 0) return {};
  Relay& all = the_relay();
  const std::lock_guard lock(all.mutex);
  if (!start()) return {};
  const std::uint64_t number = ++all.last;
  if (!watch(EPOLL_CTL_ADD, made->far.get(), EPOLLIN, number << 1)) return {};
  if (!watch(EPOLL_CTL_ADD, made->near.get(), EPOLLIN, (number << 1) | 1)) {
    watch(EPOLL_CTL_DEL, made->far.get(), 0, 0);
    return {};
  }
  all.connections.emplace(number, made);
  all.of_end.emplace(about.st_ino, number);
  return end;
}

UniqueFd relayed_connection(int relayed) {
  struct stat about {};
  if (::fstat(relayed, &about) != 0 || !S_ISSOCK(about.st_mode)) return {};
  Relay& all = the_relay();
  const std::lock_guard lock(all.mutex);
  const auto end = all.of_end.find(about.st_ino);
  if (end == all.of_end.end()) return {};
  Connection& found = *all.connections.at(end->second);
  // The relay holds this lock during one non-blocking system call. A caller that did not wait for the lock
  // could mistake the end of the stream for the end of the connection.
  const std::lock_guard reading(found.reading);
  found.taken = true;
  return UniqueFd(::fcntl(found.far.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace rdma_rpc::fabric
