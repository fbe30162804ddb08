// Measures the cost of the shm fabric itself, without session or Node. It measures nanoseconds for a post and
// for a poll when the other side is quiet, and for an echo between two processes. It also measures gigabytes
// per second of READ and WRITE.
//
// Run it by hand: shm_ring [CPU of the client] [CPU of the server], default 0 and 1. Each figure is the best
// of many short rounds. On a machine with other load, the other rounds measure that load.
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fabric/shm/shm.h"

using namespace rdma_rpc::fabric;

namespace {

constexpr std::uint32_t kDepth = 320;
constexpr std::uint32_t kSlotBytes = 8192;
constexpr std::uint32_t kMessageBytes = 50;
constexpr std::size_t kBatch = 16;
constexpr std::size_t kBulkBytes = std::size_t{64} << 20;
// The rounds are short and many, so that some round has both CPUs to itself.
constexpr int kRounds = 300;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "shm_ring: %s\n", what.c_str());
  std::exit(1);
}

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    std::fprintf(stderr, "shm_ring: cannot pin to CPU %d\n", cpu);
}

/// One end: a device, its queues, a slab of receives that are reposted in batches, and memory for bulk data.
struct End {
  std::string error;
  std::unique_ptr<Device> device = open_shm_device({}, &error);
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<QueuePair> qp;
  std::unique_ptr<HostMemory> slab, bulk;
  std::unique_ptr<MemoryRegion> slab_region, bulk_region;
  RecvWr again[kBatch];
  std::size_t again_count = 0;
  std::uint64_t sent = 0;

  End() {
    if (!device) fail(error);
    cq = device->create_cq(1024);
    qp = device->create_qp(*cq, {.send_wr_max = 512, .recv_wr_max = kDepth}, &error);
    slab = device->alloc_memory(std::size_t{kDepth} * kSlotBytes, "slab");
    bulk = device->alloc_memory(kBulkBytes, "bulk");
    if (!qp || !slab || !bulk) fail("cannot make the queues: " + error);
    slab_region = device->reg_mr(slab->data(), slab->size(), access_local_write, &error);
    bulk_region = device->reg_mr(bulk->data(), bulk->size(),
                                 access_local_write | access_remote_read | access_remote_write, &error);
    std::memset(bulk->data(), 1, bulk->size());
    for (std::uint32_t i = 0; i < kDepth; ++i) repost(i);
    flush_reposts();
  }

  Sge slot(std::uint64_t index) const {
    return {reinterpret_cast<std::uint64_t>(slab->data()) + index * kSlotBytes, kSlotBytes,
            slab_region->lkey()};
  }
  void repost(std::uint64_t index) {
    again[again_count++] = {index, slot(index)};
    if (again_count == kBatch) flush_reposts();
  }
  void flush_reposts() {
    if (qp->post_recv({again, again_count}) != again_count) fail("post_recv");
    again_count = 0;
  }

  void send(std::size_t count) {
    static std::byte message[kMessageBytes];
    const Sge sge{reinterpret_cast<std::uint64_t>(message), kMessageBytes, 0};
    while (count > 0) {
      SendWr batch[kBatch];
      const std::size_t size = std::min(count, kBatch);
      for (std::size_t i = 0; i < size; ++i) {
        batch[i].sges = {&sge, 1};
        batch[i].inline_data = true;
        batch[i].signaled = ++sent % 64 == 0;
      }
      if (qp->post_send({batch, size}) != size) fail("post_send");
      count -= size;
    }
  }
  /// Polls once, reposts the receives of the messages that arrived, and returns the number of these messages.
  std::size_t receive(std::size_t most = 64) {
    Wc batch[64];
    const std::size_t count = cq->poll({batch, most});
    std::size_t messages = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (batch[i].status != WcStatus::success) fail(to_string(batch[i].status));
      if (batch[i].opcode != Opcode::recv) continue;
      ++messages;
      repost(batch[i].wr_id);
    }
    return messages;
  }
};

struct Hello {
  std::byte address[512];
  std::size_t address_bytes;
  std::uint64_t bulk_addr;
  std::uint32_t bulk_rkey;
};

Hello exchange(End& end, int socket) {
  Hello mine{}, theirs{};
  const auto address = end.qp->local_address();
  std::memcpy(mine.address, address.data(), address.size());
  mine.address_bytes = address.size();
  mine.bulk_addr = end.bulk_region->addr();
  mine.bulk_rkey = end.bulk_region->rkey();
  if (write(socket, &mine, sizeof mine) != sizeof mine ||
      read(socket, &theirs, sizeof theirs) != sizeof theirs) {
    fail("the peer went away");
  }
  const std::string reason = end.qp->connect({theirs.address, theirs.address_bytes});
  if (!reason.empty()) fail(reason);
  return theirs;
}

void echo_until_closed(End& end, int socket) {
  pollfd closed{socket, POLLIN, 0};
  while (poll(&closed, 1, 0) == 0) {
    for (int i = 0; i < 10000; ++i) {
      const std::size_t count = end.receive(32);
      if (count > 0) end.send(count);
    }
  }
}

double echo_ns(End& end, std::size_t in_flight, std::size_t calls) {
  const double start = now_ns();
  end.send(in_flight);
  std::size_t sent = in_flight, done = 0;
  while (done < calls) {
    const std::size_t count = end.receive(32);
    done += count;
    const std::size_t next = std::min(count, calls - sent);
    if (next > 0) end.send(next);
    sent += next;
  }
  return (now_ns() - start) / static_cast<double>(calls);
}

double bulk_gbps(End& end, const Hello& peer, Opcode opcode, std::uint32_t bytes) {
  const std::uint64_t total = std::max<std::uint64_t>(std::uint64_t{4} << 20, bytes);
  const double start = now_ns();
  for (std::uint64_t done = 0; done < total; done += bytes) {
    const std::uint64_t offset = done % kBulkBytes;
    const Sge sge{end.bulk_region->addr() + offset, bytes, end.bulk_region->lkey()};
    SendWr wr;
    wr.opcode = opcode;
    wr.signaled = true;
    wr.sges = {&sge, 1};
    wr.remote_addr = peer.bulk_addr + offset;
    wr.rkey = peer.bulk_rkey;
    Wc wc;
    if (end.qp->post_send({&wr, 1}) != 1 || end.cq->poll({&wc, 1}) != 1 || wc.status != WcStatus::success) {
      fail("READ or WRITE");
    }
  }
  return static_cast<double>(total) / (now_ns() - start);
}

/// Prints the cost of the code with both ends in this process, when no cache line moves between CPUs.
void print_costs() {
  End here, there;
  const std::string reason =
      here.qp->connect(there.qp->local_address()) + there.qp->connect(here.qp->local_address());
  if (!reason.empty()) fail(reason);
  double post = 1e9, poll = 1e9;
  for (int round = 0; round < 20000; ++round) {
    const double start = now_ns();
    for (int i = 0; i < 4; ++i) here.send(kBatch);
    const double middle = now_ns();
    std::size_t got = 0;
    while (got < 4 * kBatch) got += there.receive();
    post = std::min(post, (middle - start) / (4 * kBatch));
    poll = std::min(poll, (now_ns() - middle) / (4 * kBatch));
    here.receive();
  }
  std::printf("post_send, %u B inline, 16 a batch   %6.1f ns a message\n", kMessageBytes, post);
  std::printf("poll and post_recv, 16 a batch       %6.1f ns a message\n", poll);
}

}  // namespace

int main(int argc, char** argv) {
  const int client_cpu = argc > 1 ? std::atoi(argv[1]) : 0;
  const int server_cpu = argc > 2 ? std::atoi(argv[2]) : 1;
  pin(client_cpu);
  print_costs();

  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) fail("socketpair");
  const pid_t child = fork();
  if (child == 0) {
    close(sockets[0]);
    pin(server_cpu);
    End end;
    exchange(end, sockets[1]);
    echo_until_closed(end, sockets[1]);
    _exit(0);
  }
  close(sockets[1]);
  {
    End end;
    const Hello peer = exchange(end, sockets[0]);
    for (const std::size_t in_flight : {1u, 32u, 256u}) {
      double best = 1e9;
      for (int round = 0; round < kRounds; ++round) {
        best = std::min(best, echo_ns(end, in_flight, in_flight == 1 ? 2'000 : 20'000));
      }
      std::printf("echo, %3zu in flight                  %6.1f ns   %6.2f M/s\n", in_flight, best,
                  1e3 / best);
    }
    for (const Opcode opcode : {Opcode::rdma_read, Opcode::rdma_write}) {
      std::printf("%s", opcode == Opcode::rdma_read ? "READ " : "WRITE");
      for (const std::uint32_t kib : {4u, 64u, 1024u, 16384u}) {
        double best = 0;
        for (int round = 0; round < kRounds / 5; ++round) {
          best = std::max(best, bulk_gbps(end, peer, opcode, kib << 10));
        }
        std::printf("   %u KiB %.1f GB/s", kib, best);
      }
      std::printf("\n");
    }
  }
  close(sockets[0]);
  waitpid(child, nullptr, 0);
  return 0;
}
