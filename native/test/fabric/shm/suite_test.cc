// The fabric suite on shm: two devices in this process. What only two processes can show is in
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

/// By descriptors, through a listener as a server has one.
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

// `mapped` is how it runs where the system forbids process_vm_readv; small pieces show that cutting a copy up
// loses nothing.
INSTANTIATE_TEST_SUITE_P(Shm, FabricSuite,
                         ::testing::Values(factory("shm", {}), factory("shm_mapped", {.any_memory = false}),
                                           factory("shm_small_pieces", {.copy_chunk_bytes = 7}),
                                           FabricFactory{"shm_by_descriptors",
                                                         [] { return std::make_unique<ShmFdFabric>(); }}),
                         factory_name);

}  // namespace
}  // namespace rdma_rpc::fabric::test
