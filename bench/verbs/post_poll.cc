// Measures post and poll of a SEND of 32 bytes in C++ on fabric.h. bench/verbs/post-poll.ts does the same
// through `rdma-rpc/verbs`. Both ends are in this thread. It prints nanoseconds for each SEND, with its
// receive and both completions.
//
//   post_poll sim|shm|DEVICE BATCH ROUNDS       both ends on that RDMA device
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/shm/shm.h"
#include "fabric/sim/sim.h"
#include "fabric/verbs_loader.h"

namespace {

using namespace rdma_rpc::fabric;

constexpr std::uint32_t kBytes = 32;
constexpr std::size_t kMemoryBytes = 4096;
constexpr std::uint32_t kDepth = 128;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "post_poll: %s\n", why.c_str());
  std::exit(1);
}

struct End {
  std::unique_ptr<Device> device;
  std::unique_ptr<HostMemory> memory;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<QueuePair> qp;

  End(std::unique_ptr<Device> opened, bool active) : device(std::move(opened)) {
    std::string why;
    memory = device->alloc_memory(kMemoryBytes, "bench");
    region = device->reg_mr(memory->data(), kMemoryBytes, access_local_write, &why);
    cq = device->create_cq(2 * kDepth);
    QpOptions options;
    options.send_wr_max = options.recv_wr_max = kDepth;
    options.active = active;
    qp = device->create_qp(*cq, options, &why);
    if (qp == nullptr) fail(why);
  }
  Sge sge(std::size_t i) const {
    return {reinterpret_cast<std::uint64_t>(memory->data()) + i * kBytes, kBytes, region->lkey()};
  }
};

void take(End& end, std::size_t count) {
  std::array<Wc, 32> wcs;
  while (count > 0) {
    const std::size_t got = end.cq->poll(wcs);
    for (std::size_t i = 0; i < got; ++i) {
      if (wcs[i].status != WcStatus::success) fail(to_string(wcs[i].status));
    }
    count -= got;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) fail("usage: post_poll sim|shm|DEVICE BATCH ROUNDS");
  const std::size_t batch = std::strtoul(argv[2], nullptr, 10), rounds = std::strtoul(argv[3], nullptr, 10);
  SimWorld world;
  const auto open = [&]() -> std::unique_ptr<Device> {
    std::string why;
    if (std::string_view(argv[1]) == "sim") return world.open_device();
    VerbsOptions options;
    options.device = argv[1];
    auto device =
        std::string_view(argv[1]) == "shm" ? open_shm_device({}, &why) : open_verbs_device(options, &why);
    if (device == nullptr) fail(why);
    return device;
  };
  End a(open(), true), b(open(), false);
  if (std::string why = a.qp->connect(b.qp->local_address()); !why.empty()) fail(why);
  if (std::string why = b.qp->connect(a.qp->local_address()); !why.empty()) fail(why);
  while (a.qp->state() == QpState::rtr || b.qp->state() == QpState::rtr) {
    std::array<Wc, 1> none;
    a.cq->poll(none);
    b.cq->poll(none);
  }
  std::vector<Sge> sges;
  std::vector<SendWr> sends;
  std::vector<RecvWr> receives;
  for (std::size_t i = 0; i < batch; ++i) sges.push_back(a.sge(i));
  for (std::size_t i = 0; i < batch; ++i) {
    SendWr wr;
    wr.wr_id = i;
    wr.signaled = wr.inline_data = true;
    wr.sges = {&sges[i], 1};
    sends.push_back(wr);
    receives.push_back({i, b.sge(i)});
  }
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t round = 0; round < rounds; ++round) {
    if (b.qp->post_recv(receives) != batch || a.qp->post_send(sends) != batch) fail("a queue is full");
    take(b, batch);
    take(a, batch);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.1f\n", took.count() / static_cast<double>(batch * rounds));
  return 0;
}
