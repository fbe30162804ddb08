// See connection_manager.h.
#include "fabric/verbs/connect/connection_manager.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/verbs/connect/cm_connection.h"
#include "fabric/verbs/connect/removal.h"
#include "fabric/verbs/device.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr char kFile[] = "/dev/infiniband/rdma_cm";
constexpr int kBacklog = 512;
/// Number of ports to try. The kernel picks a port that is free for rdma_cm; on iWARP the port must also be
/// free for TCP sockets.
constexpr int kPortsTried = 16;
/// Limit of ids of connections that ended while the port was down. Further ids are destroyed at once.
constexpr std::size_t kPutAwayMax = 4096;

}  // namespace

std::string why_no_rdma_cm() {
  // The file is checked first, because the library writes to stderr when it is missing.
  if (::access(kFile, R_OK | W_OK) == 0) return "";
  const int error = errno;
  return std::string("rdma_cm is off: ") + kFile + ": " + std::strerror(error) +
         (error == EACCES ? " (it needs the rights that uverbs* beside it has)"
                          : " (modprobe rdma_ucm, after ib_uverbs)");
}

std::unique_ptr<ConnectionManager> ConnectionManager::open(const Device& device, std::string* why) {
  *why = why_no_rdma_cm();
  if (!why->empty()) return nullptr;
  std::unique_ptr<ConnectionManager> manager(new ConnectionManager(device));
  const bool found = manager->find_address();
  if (manager->channel_ == nullptr) {
    *why = std::string("rdma_cm is off: ") + std::strerror(errno);
    return nullptr;
  }
  if (!found) {
    *why = "rdma_cm is off: the network interface of " + device.capabilities().name +
           " has no IP address (ip address add)";
    return nullptr;
  }
  return manager;
}

ConnectionManager::~ConnectionManager() {
  listener_.reset();
  put_away_.clear();
  if (anchor_ != nullptr) watch_for_removal(std::move(channel_), std::move(anchor_));
}

IdPtr ConnectionManager::create_id(void* context) const {
  rdma_cm_id* made = nullptr;
  IdPtr id(rdma_create_id(channel_.get(), &made, context, RDMA_PS_TCP) == 0 ? made : nullptr);
  auto tos = static_cast<std::uint8_t>(device_.options().tos);
  if (id != nullptr && device_.options().tos >= 0 &&
      rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos) != 0)
    return nullptr;
  return id;
}

bool ConnectionManager::is_mine(const rdma_cm_id& id) const {
  return id.verbs != nullptr && device_.capabilities().name == ibv_get_device_name(id.verbs->device) &&
         id.port_num == device_.port().number;
}

bool ConnectionManager::find_address() {
  // No attribute of a device tells which IP addresses lead to it (the GID of an iWARP device is no IP
  // address). Therefore all addresses are tried, the likely ones first.
  const std::vector<IpAddress> candidates = host_addresses();
  const std::optional<Interface> wanted = interface_with(device_.options().address);
  const auto rank = [&](const IpAddress& ip) {
    if (wanted && ip.bytes == wanted->address) return 0;
    return ip.bytes == device_.port().address.gid ? 1 : ip.is_ipv4() ? 2 : 3;
  };
  if (!open_channel()) return false;
  for (int turn = 0; turn <= 3; ++turn) {
    for (const IpAddress& candidate : candidates) {
      if (rank(candidate) == turn && leads_here(candidate)) {
        address_ = candidate;
        return true;
      }
    }
  }
  return false;
}

bool ConnectionManager::open_channel() {
  if (channel_ != nullptr) return true;
  std::shared_ptr<rdma_event_channel> channel = EventChannelPtr(rdma_create_event_channel());
  if (channel == nullptr || ::fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0) return false;
  channel_ = std::move(channel);
  return true;
}

bool ConnectionManager::leads_here(const IpAddress& address) {
  if (!open_channel()) return false;  // the channel of the previous attempt may have been given away
  IdPtr id = create_id(nullptr);
  sockaddr_storage at = to_sockaddr(address);
  if (id == nullptr || rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&at)) != 0 ||
      id->verbs == nullptr)
    return false;
  if (!is_mine(*id)) {
    // librdmacm has opened another device for that address.
    watch_for_removal(std::move(channel_), std::move(id));
    return false;
  }
  anchor_ = std::move(id);
  return true;
}

std::string ConnectionManager::listen() {
  if (listener_ != nullptr) return "";
  sockaddr_storage at = to_sockaddr({address_.bytes, 0, address_.scope});
  int error = EADDRINUSE;
  for (int i = 0; i < kPortsTried && error == EADDRINUSE; ++i) {
    IdPtr id = create_id(nullptr);
    if (id != nullptr && rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&at)) == 0 &&
        rdma_listen(id.get(), kBacklog) == 0) {
      address_.port = ntohs(rdma_get_src_port(id.get()));
      listener_ = std::move(id);
      return "";
    }
    error = errno;
  }
  return "rdma_cm cannot listen on " + to_string(address_) + ": " + std::strerror(error);
}

bool ConnectionManager::can_speak() const {
  // The query is a command of some 100 us, and hundreds of connections may end at once. Therefore its result
  // is kept for a short time.
  constexpr std::chrono::milliseconds kFresh{20};
  const auto now = Attempts::Clock::now();
  if (now - asked_ > kFresh) {
    // (A device that cannot be queried is being removed. The removal waits until the device's ids are
    // destroyed.)
    spoke_ = why_down(device_.context(), device_.port().number).empty();
    asked_ = now;
  }
  return spoke_;
}

void ConnectionManager::put_away(IdPtr id) {
  if (id == nullptr || removed_ || put_away_.size() == kPutAwayMax || can_speak()) return;
  id->context = nullptr;
  put_away_.push_back(std::move(id));
}

void ConnectionManager::progress() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_.get(), &event) == 0) {
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      take_request(*event);
      continue;
    }
    auto* connection = static_cast<CmConnection*>(event->id->context);
    const bool of_listener = event->id == listener_.get();
    const rdma_cm_event_type type = event->event;
    const int status = event->status;
    removed_ = removed_ || type == RDMA_CM_EVENT_DEVICE_REMOVAL;
    rdma_ack_cm_event(event);  // before handle(), which may destroy the id
    if (connection != nullptr) connection->handle(type, status);
    if (of_listener) listener_.reset();  // the device has been removed
    if (!removed_) continue;
    put_away_.clear();
    if (anchor_ != nullptr) let_go_of_removed(std::move(anchor_));
  }
}

void ConnectionManager::take_request(rdma_cm_event& event) {
  IdPtr id(event.id);
  PrivateData data{.magic = 0};
  if (event.param.conn.private_data != nullptr && event.param.conn.private_data_len >= sizeof data)
    std::memcpy(&data, event.param.conn.private_data, sizeof data);
  rdma_ack_cm_event(&event);
  if (data.magic == PrivateData::kMagic) {
    for (CmConnection* connection : connections_) {
      if (connection->offer(data, id)) return;
    }
  }
  rdma_reject(id.get(), nullptr, 0);
}

}  // namespace rdma_rpc::fabric::verbs
