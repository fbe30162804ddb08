// See open_fabric.h.
#include "binding/verbs/open_fabric.h"

#include <map>
#include <tuple>
#include <utility>

#include "fabric/shm/shm.h"
#include "fabric/tcp/tcp.h"

namespace rdma_rpc::binding {
namespace {

/// Returns the simulated world for these options. All simulated devices of a thread that were opened with the
/// same options are in one world, so that their queue pairs can connect to each other. A world ends with its
/// last device.
std::shared_ptr<fabric::SimWorld> world_of_thread(const OpenOptions& given) {
  using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;
  thread_local std::map<Key, std::weak_ptr<fabric::SimWorld>> worlds;
  std::weak_ptr<fabric::SimWorld>& known = worlds[Key(given.seed, given.loss_ppm, given.duplicate_ppm)];
  if (auto world = known.lock()) return world;
  fabric::SimOptions options;
  options.seed = given.seed;
  options.loss_ppm = given.loss_ppm;
  options.duplicate_ppm = given.duplicate_ppm;
  auto world = std::make_shared<fabric::SimWorld>(options);
  known = world;
  return world;
}

}  // namespace

std::shared_ptr<OpenFabric> OpenFabric::open(const OpenOptions& options, std::string* error) {
  auto open = std::make_shared<OpenFabric>();
  if (options.fabric == "sim") {
    open->world_ = world_of_thread(options);
    open->device_ = open->world_->open_device();
  } else if (options.fabric == "shm") {
    open->device_ = fabric::open_shm_device({}, error);
  } else if (options.fabric == "tcp") {
    fabric::TcpOptions tcp;
    if (!options.host.empty() || options.handed_over) tcp.host = options.host;
    open->device_ = fabric::open_tcp_device(tcp, error);
  } else {
    open->device_ = fabric::open_verbs_device(options.verbs, error);
  }
  return open->device_ == nullptr ? nullptr : open;
}

OpenFabric::~OpenFabric() {
  // The memory objects of a device must be destroyed before the device. The pages stay mapped for
  // ArrayBuffers that still use them.
  for (const auto& each : blocks_) {
    if (const auto block = each.lock()) block->host.reset();
  }
}

std::shared_ptr<OwnedBlock> OpenFabric::alloc(std::size_t bytes) {
  auto memory = device_->alloc_memory(bytes, "verbs");
  if (memory == nullptr) return nullptr;
  std::erase_if(blocks_, [](const auto& block) { return block.expired(); });
  auto block = own(std::move(memory));
  blocks_.push_back(block);
  return block;
}

}  // namespace rdma_rpc::binding
