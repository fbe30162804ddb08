// Opens two ends of a shm connection for tests that need more than the suite offers: a child process at the
// other end, or access to the bytes in shared memory.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>

#include "fabric/shm/shm.h"

namespace rdma_rpc::fabric::test {

// Only a test that hangs reaches this limit; no result depends on how long something took.
inline constexpr auto kTimeout = std::chrono::seconds(30);

/// A device with one queue pair and memory, in this process. All receives have `slot_bytes` bytes and are
/// posted at once.
struct ShmEnd {
  static constexpr std::uint32_t kReceives = 16;
  static constexpr std::uint32_t kSlotBytes = 4096;
  static constexpr std::size_t kMemoryBytes = std::size_t{1} << 20;

  std::string error;
  std::unique_ptr<Device> device;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<HostMemory> slab, memory;
  std::unique_ptr<MemoryRegion> slab_region, region;
  std::unique_ptr<MemoryWindow> window;
  std::unique_ptr<QueuePair> qp;

  explicit ShmEnd(const ShmOptions& options = {}, std::size_t memory_bytes = kMemoryBytes)
      : device(open_shm_device(options, &error)) {
    cq = device->create_cq(256);
    slab = device->alloc_memory(kReceives * kSlotBytes, "test slab");
    memory = device->alloc_memory(memory_bytes, "test memory");
    slab_region = device->reg_mr(slab->data(), slab->size(), access_local_write, &error);
    region = device->reg_mr(memory->data(), memory->size(), access_local_write | access_mw_bind, &error);
    window = device->alloc_mw();
    open_qp();
  }
  void open_qp() {
    qp.reset();
    qp = device->create_qp(*cq, {.send_wr_max = 64, .recv_wr_max = kReceives}, &error);
    for (std::uint32_t i = 0; i < kReceives; ++i) post_recv(i);
  }
  void free_memory() {
    window.reset();
    region.reset();
    memory.reset();
  }
  void post_recv(std::uint64_t slot) {
    const RecvWr wr{
        1000 + slot,
        {reinterpret_cast<std::uint64_t>(slab->data()) + slot * kSlotBytes, kSlotBytes, slab_region->lkey()}};
    qp->post_recv({&wr, 1});
  }
  Sge sge(std::size_t offset, std::size_t bytes) const {
    return {region->addr() + offset, static_cast<std::uint32_t>(bytes), region->lkey()};
  }

  bool post(Opcode opcode, std::uint64_t wr_id, std::span<const Sge> sges, std::uint64_t remote_addr = 0,
            std::uint32_t rkey = 0) const {
    SendWr wr;
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.signaled = true;
    wr.sges = sges;
    wr.remote_addr = remote_addr;
    wr.rkey = rkey;
    wr.invalidate_rkey = rkey;
    return qp->post_send({&wr, 1}) == 1;
  }
  bool bind(const MemoryRegion& of, std::uint64_t addr, std::size_t bytes, std::uint32_t access) {
    SendWr wr;
    wr.opcode = Opcode::bind_mw;
    wr.signaled = true;
    wr.bind = {window.get(), &of, addr, bytes, access};
    return qp->post_send({&wr, 1}) == 1 && next().status == WcStatus::success;
  }
  bool bind_all(std::uint32_t access) { return bind(*region, region->addr(), region->length(), access); }

  /// Returns the next completion. When none arrives, returns general_err with wr_id 2^64 - 1.
  Wc next() const {
    const auto end = std::chrono::steady_clock::now() + kTimeout;
    Wc wc;
    while (cq->poll({&wc, 1}) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        std::fprintf(stderr, "no completion came\n");
        return {.wr_id = ~std::uint64_t{0}, .status = WcStatus::general_err};
      }
      ::sched_yield();
    }
    return wc;
  }
  /// Polls until every receive has completed. Returns how many succeeded.
  std::uint32_t drain_receives() const {
    std::uint32_t receives = 0;
    while (receives < kReceives) {
      const Wc wc = next();
      if (wc.wr_id == ~std::uint64_t{0}) break;
      if (wc.opcode == Opcode::recv) ++receives;
    }
    return receives;
  }
};

/// The data that the two ends exchange before they connect.
struct ShmHello {
  std::byte address[512];
  std::uint64_t address_bytes;
  std::uint64_t remote_addr;  ///< memory that the peer may use
  std::uint32_t rkey;
  std::uint32_t reserved;

  std::span<const std::byte> blob() const { return {address, address_bytes}; }
};

inline ShmHello hello_of(const ShmEnd& end) {
  ShmHello hello{};
  const auto address = end.qp->local_address();
  std::memcpy(hello.address, address.data(), address.size());
  hello.address_bytes = address.size();
  return hello;
}

/// The far end, in a process of its own. `run` is executed in the child process; its return value is the exit
/// code, and 0 means success.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int(int socket)>& run) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      ::_exit(run(ends[1]));
    }
    ::close(ends[1]);
    socket_ = ends[0];
  }
  ~ChildProcess() {
    if (running_) {
      signal(SIGKILL);
      signal(SIGCONT);
      wait();
    }
    ::close(socket_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int socket() const { return socket_; }
  void signal(int number) const { ::kill(pid_, number); }
  /// Waits until a signal has stopped the process. Returns false when it has ended.
  bool wait_stopped() const {
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }
  /// Waits until the process has ended. Returns the exit code, or minus the number of the signal that killed
  /// it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    running_ = false;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int socket_ = -1;
  bool running_ = true;
};

template <typename T>
bool tell(int socket, const T& what) {
  return ::send(socket, &what, sizeof what, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof what);
}
template <typename T>
std::optional<T> hear(int socket) {
  T what;
  if (::recv(socket, &what, sizeof what, MSG_WAITALL) != static_cast<ssize_t>(sizeof what))
    return std::nullopt;
  return what;
}

/// Exchanges hellos and connects. Returns "", or the reason of a failure.
inline std::string meet(ShmEnd& end, int socket, const ShmHello& mine, ShmHello* theirs) {
  if (!tell(socket, mine)) return "the peer does not listen";
  const auto heard = hear<ShmHello>(socket);
  if (!heard) return "the peer does not speak";
  *theirs = *heard;
  return end.qp->connect(heard->blob());
}

}  // namespace rdma_rpc::fabric::test
