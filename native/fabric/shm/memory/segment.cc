// Handles memfds, seals and /proc/<pid>/fd; see segment.h.
#include "fabric/shm/memory/segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "fabric/system_limit.h"

namespace rdma_rpc::fabric::shm {
namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

std::string system_error(const std::string& what) { return "shm: " + what + ": " + system_refusal(errno); }

std::string fd_path(std::uint32_t pid, std::uint32_t fd) {
  return "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
}

/// Opens a peer's file in two steps. First it opens a bare handle to see what kind of file it is, because
/// opening a device or a named pipe may block or have side effects. Then it opens the same file for use.
UniqueFd open_peer_file(const ProcessIdentity& peer, std::uint32_t fd, mode_t kind, int flags,
                        std::string* error) {
  const std::string path = fd_path(peer.pid, fd);
  const UniqueFd handle(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat about {};
  if (!handle || ::fstat(handle.get(), &about) != 0) {
    const bool refused = errno == EACCES || errno == EPERM || errno == ENOENT;
    *error = system_error("cannot open " + path);
    if (refused)
      *error += "; both processes must run as the same user, be dumpable and share a pid namespace";
    return {};
  }
  if ((about.st_mode & S_IFMT) != kind) {
    *error = "shm: " + path + " is not the kind of file that the peer said";
    return {};
  }
  const std::string own_path = "/proc/self/fd/" + std::to_string(handle.get());
  UniqueFd file(::open(own_path.c_str(), flags | O_CLOEXEC));
  if (!file) *error = system_error("cannot open " + path);
  return file;
}

Mapping map_memfd(const UniqueFd& file, const std::string& name, std::size_t bytes, PeerMay access,
                  std::string* error) {
  const bool write = access == PeerMay::write;
  // Checks the seals first. The process that serves a file's file system can delay any other query about the
  // file. Files of such file systems have no seals.
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & kFixedSize) == kFixedSize;
  struct stat about {};
  struct statfs system {};
  if (sealed && (::fstat(file.get(), &about) != 0 || ::fstatfs(file.get(), &system) != 0)) {
    *error = system_error("cannot look at " + name);
    return {};
  }
  // Memory of huge pages is refused, too, because an access to it raises SIGBUS when the pool of huge pages
  // is empty.
  if (!sealed || system.f_type != TMPFS_MAGIC || static_cast<std::size_t>(about.st_size) != bytes) {
    *error =
        "shm: " + name + " is not a memfd of " + std::to_string(bytes) + " bytes sealed against resizing";
    return {};
  }
  void* data = ::mmap(nullptr, bytes, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    *error = system_error("cannot map " + std::to_string(bytes) + " bytes of the peer's memory");
    return {};
  }
  return {static_cast<std::byte*>(data), bytes};
}

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

bool Mapping::move_over(std::byte* address) {
  if (::mremap(data_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, address) == MAP_FAILED) return false;
  data_ = nullptr;
  return true;
}

Segment create_segment(const char* name, std::size_t bytes, PeerMay peer, std::string* error) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) {
    *error = system_error("memfd_create");
    return {};
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    *error = system_error("cannot make " + std::to_string(bytes) + " bytes of shared memory");
    return {};
  }
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) {
    *error = system_error("cannot map " + std::to_string(bytes) + " bytes of shared memory");
    return {};
  }
  Mapping map(static_cast<std::byte*>(data), bytes);
  // The memfd is sealed after our own mapping exists. F_SEAL_FUTURE_WRITE leaves that mapping writable, and
  // makes every later mapping read-only.
  const int seals = kFixedSize | (peer == PeerMay::read ? F_SEAL_FUTURE_WRITE : 0) | F_SEAL_SEAL;
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) {
    *error = system_error("cannot seal shared memory (needs Linux 5.1)");
    return {};
  }
  return {std::move(fd), std::move(map)};
}

Mapping map_peer_memfd(const ProcessIdentity& peer, std::uint32_t fd, std::size_t bytes, PeerMay access,
                       std::string* error) {
  const int flags = access == PeerMay::write ? O_RDWR : O_RDONLY;
  const UniqueFd file = open_peer_file(peer, fd, S_IFREG, flags, error);
  return file ? map_memfd(file, fd_path(peer.pid, fd), bytes, access, error) : Mapping();
}

Mapping map_sent_memfd(const UniqueFd& file, std::size_t bytes, PeerMay access, std::string* error) {
  return map_memfd(file, "the received descriptor", bytes, access, error);
}

UniqueFd open_peer_pipe(const ProcessIdentity& peer, std::uint32_t fd, std::string* error) {
  return open_peer_file(peer, fd, S_IFIFO, O_RDWR | O_NONBLOCK, error);
}

}  // namespace rdma_rpc::fabric::shm
