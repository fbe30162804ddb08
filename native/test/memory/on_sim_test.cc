// Tests arena blocks and cached registrations on a fabric that checks keys and rights as a NIC would: a peer
// reads from both through a window into a block of its own.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "fabric/sim/sim.h"
#include "memory/arena.h"
#include "memory/mr_cache.h"

namespace rdma_rpc::memory {
namespace {

constexpr std::size_t kBytes = 100'000;

class OnSim : public testing::Test {
 protected:
  struct End {
    explicit End(std::unique_ptr<fabric::Device> opened) : device(std::move(opened)) {
      cq = device->create_cq(16);
      std::string error;
      qp = device->create_qp(*cq, {}, &error);
    }
    fabric::Wc post(const fabric::SendWr& wr) {
      EXPECT_EQ(qp->post_send({&wr, 1}), 1u);
      fabric::Wc wc;
      EXPECT_EQ(cq->poll({&wc, 1}), 1u);
      return wc;
    }
    std::unique_ptr<fabric::Device> device;
    std::unique_ptr<fabric::CompletionQueue> cq;
    std::unique_ptr<fabric::QueuePair> qp;
  };

  OnSim() {
    EXPECT_EQ(client.qp->connect(server.qp->local_address()), "");
    EXPECT_EQ(server.qp->connect(client.qp->local_address()), "");
  }

  /// Grants the server read access to client memory for one call, and READs the memory into a block of the
  /// server's arena.
  fabric::WcStatus read_from_client(const fabric::MemoryRegion& region, const void* data, Arena& sinks) {
    auto window = client.device->alloc_mw();
    fabric::SendWr bind;
    bind.opcode = fabric::Opcode::bind_mw;
    bind.signaled = true;
    bind.bind = {window.get(), &region, reinterpret_cast<std::uint64_t>(data), kBytes,
                 fabric::access_remote_read};
    EXPECT_EQ(client.post(bind).status, fabric::WcStatus::success);

    sink = sinks.alloc(kBytes);
    const Block& block = sinks.at(sink);
    const fabric::Sge sge{reinterpret_cast<std::uint64_t>(block.data), kBytes, block.region->lkey()};
    fabric::SendWr read;
    read.opcode = fabric::Opcode::rdma_read;
    read.signaled = true;
    read.sges = {&sge, 1};
    read.remote_addr = reinterpret_cast<std::uint64_t>(data);
    read.rkey = window->rkey();
    return server.post(read).status;
  }

  fabric::SimWorld world;
  End client{world.open_device("client")};
  End server{world.open_device("server")};
  BlockId sink = kNoBlock;
};

TEST_F(OnSim, APeerReadsFromABlockIntoABlock) {
  Arena sources(*client.device, {}), sinks(*server.device, {});
  const Block& source = sources.at(sources.alloc(kBytes));
  std::memset(source.data, 0x5a, kBytes);
  ASSERT_EQ(read_from_client(*source.region, source.data, sinks), fabric::WcStatus::success);
  EXPECT_EQ(std::memcmp(sinks.at(sink).data, source.data, kBytes), 0);
}

TEST_F(OnSim, APeerReadsFromACachedBuffer) {
  std::vector<std::byte> buffer(kBytes, std::byte{0x5a});
  MrCache cache(*client.device, {});
  Arena sinks(*server.device, {});
  std::string error;
  const auto* region = cache.acquire(1, buffer.data(), buffer.size(), 0, &error);
  ASSERT_NE(region, nullptr) << error;
  ASSERT_EQ(read_from_client(*region, buffer.data(), sinks), fabric::WcStatus::success);
  EXPECT_EQ(std::memcmp(sinks.at(sink).data, buffer.data(), kBytes), 0);
}

TEST_F(OnSim, NeitherGivesThePeerAKeyOfItsOwn) {
  std::vector<std::byte> buffer(kBytes);
  MrCache cache(*client.device, {});
  Arena arena(*client.device, {});
  std::string error;
  EXPECT_EQ(cache.acquire(1, buffer.data(), buffer.size(), 0, &error)->rkey(), 0u);
  EXPECT_EQ(arena.at(arena.alloc(1)).region->rkey(), 0u);
}

TEST_F(OnSim, EverythingIsReleased) {
  const fabric::DeviceCounters before = client.device->counters();
  {
    std::vector<std::byte> buffer(kBytes);
    MrCache cache(*client.device, {});
    Arena arena(*client.device, {});
    std::string error;
    ASSERT_NE(cache.acquire(1, buffer.data(), buffer.size(), 0, &error), nullptr) << error;
    ASSERT_NE(arena.alloc(1), kNoBlock);
    ASSERT_NE(arena.alloc(std::size_t{5} << 20), kNoBlock);
    EXPECT_EQ(client.device->counters().memory_regions, before.memory_regions + 3);
  }
  EXPECT_EQ(client.device->counters().memory_regions, before.memory_regions);
  EXPECT_EQ(client.device->counters().memory_bytes, before.memory_bytes);
}

TEST_F(OnSim, ARefusedCreationIsARefusedBlockAndNothingElse) {
  for (const auto resource : {fabric::SimResource::memory, fabric::SimResource::region}) {
    const fabric::DeviceCounters before = client.device->counters();
    Arena arena(*client.device, {.budget_bytes = 64 << 10, .chunk_bytes = 4 << 10});
    world.fail_nth(resource, 1);
    EXPECT_EQ(arena.alloc(64 << 10), kNoBlock);
    EXPECT_EQ(client.device->counters().memory_bytes, before.memory_bytes);
    EXPECT_NE(arena.alloc(64 << 10), kNoBlock);
  }
}

}  // namespace
}  // namespace rdma_rpc::memory
