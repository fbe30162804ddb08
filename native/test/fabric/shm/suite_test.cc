// Runs the fabric suite on shm: two devices in this process. Properties that need two processes are in
// process_test.cc.
#include "fabric/shm/entrance.h"
#include "fabric/shm/shm.h"
#include "fabric/suite/fabric_suite.h"

namespace rdma_rpc::fabric::test {
namespace {

class ShmFabric final : public FabricUnderTest {
 public:
  explicit ShmFabric(const ShmOptions& options)
      : client_(open_shm_device(options, &error_)), server_(open_shm_device(options, &error_)) {}
  Device& client() override { return *client_; }
  Device& server() override { return *server_; }
  void pump() override {}

 private:
  std::string error_;
  std::unique_ptr<Device> client_, server_;
};

/// shm-fd, connected through a listener as in a server.
class ShmFdFabric final : public FabricUnderTest {
 public:
  ShmFdFabric()
      : client_(open_shm_device({.by_descriptors = true}, &error_)),
        server_(open_shm_device({.by_descriptors = true}, &error_)) {}
  Device& client() override { return *client_; }
  Device& server() override { return *server_; }
  std::vector<std::byte> dialled(std::vector<std::byte> address) override { return entrance_.to(address); }
  void pump() override { entrance_.admit(); }

 private:
  std::string error_;
  ShmEntrance entrance_;
  std::unique_ptr<Device> client_, server_;
};

FabricFactory factory(std::string name, const ShmOptions& options) {
  return {std::move(name), [options] { return std::make_unique<ShmFabric>(options); }};
}

// `mapped` behaves as on systems that forbid process_vm_readv. Small segments show that splitting a copy
// loses nothing.
INSTANTIATE_TEST_SUITE_P(Shm, FabricSuite,
                         ::testing::Values(factory("shm", {}), factory("shm_mapped", {.any_memory = false}),
                                           factory("shm_small_chunks", {.copy_chunk_bytes = 7}),
                                           FabricFactory{"shm_by_descriptors",
                                                         [] { return std::make_unique<ShmFdFabric>(); }}),
                         factory_name);

}  // namespace
}  // namespace rdma_rpc::fabric::test
