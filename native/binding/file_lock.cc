// See file_lock.h.
#include "binding/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace rdma_rpc::binding {
namespace {

/// Our lock files begin with this text, followed by the process id of the holder.
constexpr std::string_view kMark = "rdma-rpc ";
/// A released lock file is removed, so a process that has waited for it tries again with the next file.
constexpr int kTries = 100;

struct FileLock {
  std::string path;
  int fd = -1;
  bool ours = false;  ///< this process has created the file, or another process of this library has left it:
                      ///< it may be removed

  ~FileLock() {
    if (fd >= 0) ::close(fd);
  }
};

bool is_same(int fd, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

/// Returns 0, or the error number. EAGAIN means that the file has been removed in the meantime and that the
/// caller must try again.
int try_lock(FileLock& lock) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  lock.fd = ::open(lock.path.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
  lock.ours = lock.fd >= 0;
  if (lock.fd < 0) {
    // open() would have created the file, so ENOENT means that its folder does not exist.
    if (errno != EEXIST) return errno;
    lock.fd = ::open(lock.path.c_str(), kFlags);
  }
  if (lock.fd < 0) return errno == ENOENT ? EAGAIN : errno == ELOOP || errno == EISDIR ? EEXIST : errno;
  struct stat file {};
  if (::fstat(lock.fd, &file) != 0) return errno;
  if (!S_ISREG(file.st_mode)) return EEXIST;
  if (::flock(lock.fd, LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK ? EBUSY : errno;
  if (!is_same(lock.fd, lock.path)) return EAGAIN;
  if (lock.ours) return 0;
  char mark[kMark.size()] = {};
  const ssize_t bytes = ::pread(lock.fd, mark, sizeof mark, 0);
  lock.ours = bytes == static_cast<ssize_t>(sizeof mark) && std::memcmp(mark, kMark.data(), sizeof mark) == 0;
  // An empty file may come from a process that died early, or from another program. The empty file is
  // therefore locked, but never removed.
  return lock.ours || bytes == 0 ? 0 : EEXIST;
}

int lock_it(FileLock& lock) {
  int error = EAGAIN;
  for (int i = 0; i < kTries && error == EAGAIN; ++i) {
    if (lock.fd >= 0) ::close(lock.fd);
    error = try_lock(lock);
  }
  return error == EAGAIN ? EBUSY : error;
}

const char* code_of(int error) {
  switch (error) {
    case EBUSY:
      return "EWOULDBLOCK";
    case EEXIST:
      return "EEXIST";
    case EMFILE:
      return "EMFILE";
    case EACCES:
      return "EACCES";
    case ENOENT:
      return "ENOENT";
    case ENOTDIR:
      return "ENOTDIR";
    default:
      return "EIO";
  }
}

}  // namespace

Napi::Value lock_file(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto lock = std::make_unique<FileLock>();
  lock->path = info[0].As<Napi::String>().Utf8Value();
  const std::string text = std::string(kMark) + info[1].As<Napi::String>().Utf8Value() + "\n";
  if (const int error = lock_it(*lock); error != 0) {
    const Napi::Error thrown = Napi::Error::New(env, std::strerror(error));
    thrown.Value().Set("code", code_of(error));
    thrown.ThrowAsJavaScriptException();
    return env.Undefined();
  }
  // The text is only for human readers; on a full disk the file stays empty.
  if (lock->ours && ::ftruncate(lock->fd, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(lock->fd, text.data(), text.size(), 0);
  }
  return Napi::External<FileLock>::New(env, lock.release(),
                                       [](Napi::BasicEnv, const FileLock* held) { delete held; });
}

Napi::Value unlock_file(const Napi::CallbackInfo& info) {
  FileLock* lock = info[0].As<Napi::External<FileLock>>().Data();
  if (lock->fd >= 0) {
    // The file is removed while it is still locked, so that another process finds no file or a new one.
    if (lock->ours && is_same(lock->fd, lock->path)) ::unlink(lock->path.c_str());
    ::close(lock->fd);
    lock->fd = -1;
  }
  return info.Env().Undefined();
}

}  // namespace rdma_rpc::binding
