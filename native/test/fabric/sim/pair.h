// Connects two queue pairs of one simulated world, each with one block of memory each, for tests of features
// that only sim has.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "fabric/sim/sim.h"
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {

class SimPair {
 public:
  static constexpr std::size_t kBytes = 4096;
  struct End {
    std::unique_ptr<Device> device;
    std::unique_ptr<CompletionQueue> cq;
    std::unique_ptr<HostMemory> host;
    std::unique_ptr<MemoryRegion> region;
    std::unique_ptr<QueuePair> qp;  // declared last, so destroyed first

    Sge sge(std::uint64_t offset = 0, std::uint32_t length = 64) const {
      return {region->addr() + offset, length, region->lkey()};
    }
  };

  explicit SimPair(const SimOptions& options = {}, std::uint32_t cq_entries = 256) : world(options) {
    for (End* end : {&client, &server}) {
      end->device = world.open_device();
      end->cq = end->device->create_cq(cq_entries);
      end->host = end->device->alloc_memory(kBytes, "test");
      end->region = end->device->reg_mr(end->host->data(), kBytes, kAllRights | access_mw_bind, nullptr);
      end->qp = end->device->create_qp(*end->cq, {.send_wr_max = 64, .recv_wr_max = 64}, nullptr);
    }
    if (!client.qp->connect(server.qp->local_address()).empty()) std::abort();
    if (!server.qp->connect(client.qp->local_address()).empty()) std::abort();
  }

  void receive(End& end, std::uint64_t wr_id) {
    const RecvWr wr{wr_id, end.sge(2048)};
    end.qp->post_recv({&wr, 1});
  }
  /// Posts a request of 64 bytes between the beginnings of both blocks.
  void post(End& from, Opcode opcode, std::uint64_t wr_id, bool fence = false) {
    const End& to = &from == &client ? server : client;
    const Sge sge = from.sge();
    SendWr wr = request(opcode, wr_id, {&sge, 1}, to.region->addr(), to.region->rkey());
    wr.fence = fence;
    from.qp->post_send({&wr, 1});
  }
  /// Executes everything that is due, then polls this side.
  std::vector<Wc> finish(End& end) {
    world.run_until_idle();
    return poll(end);
  }
  static std::vector<Wc> poll(End& end) {
    std::vector<Wc> all(1024);
    all.resize(end.cq->poll(all));
    return all;
  }

  SimWorld world;
  End client, server;
};

}  // namespace rdma_rpc::fabric::test
