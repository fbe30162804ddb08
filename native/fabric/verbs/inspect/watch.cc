// See watch.h.
#include "fabric/verbs/inspect/watch.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "fabric/verbs/device_list.h"
#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {
namespace {

const char* event_name(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return "IBV_EVENT_CQ_ERR";
    case IBV_EVENT_QP_FATAL:
      return "IBV_EVENT_QP_FATAL";
    case IBV_EVENT_QP_REQ_ERR:
      return "IBV_EVENT_QP_REQ_ERR";
    case IBV_EVENT_QP_ACCESS_ERR:
      return "IBV_EVENT_QP_ACCESS_ERR";
    case IBV_EVENT_COMM_EST:
      return "IBV_EVENT_COMM_EST";
    case IBV_EVENT_SQ_DRAINED:
      return "IBV_EVENT_SQ_DRAINED";
    case IBV_EVENT_PATH_MIG:
      return "IBV_EVENT_PATH_MIG";
    case IBV_EVENT_PATH_MIG_ERR:
      return "IBV_EVENT_PATH_MIG_ERR";
    case IBV_EVENT_DEVICE_FATAL:
      return "IBV_EVENT_DEVICE_FATAL";
    case IBV_EVENT_PORT_ACTIVE:
      return "IBV_EVENT_PORT_ACTIVE";
    case IBV_EVENT_PORT_ERR:
      return "IBV_EVENT_PORT_ERR";
    case IBV_EVENT_LID_CHANGE:
      return "IBV_EVENT_LID_CHANGE";
    case IBV_EVENT_PKEY_CHANGE:
      return "IBV_EVENT_PKEY_CHANGE";
    case IBV_EVENT_SM_CHANGE:
      return "IBV_EVENT_SM_CHANGE";
    case IBV_EVENT_SRQ_ERR:
      return "IBV_EVENT_SRQ_ERR";
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return "IBV_EVENT_SRQ_LIMIT_REACHED";
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return "IBV_EVENT_QP_LAST_WQE_REACHED";
    case IBV_EVENT_CLIENT_REREGISTER:
      return "IBV_EVENT_CLIENT_REREGISTER";
    case IBV_EVENT_GID_CHANGE:
      return "IBV_EVENT_GID_CHANGE";
    case IBV_EVENT_WQ_FATAL:
      return "IBV_EVENT_WQ_FATAL";
    default:
      return "unknown";
  }
}

/// Only events of ports have a port number in the union of the event.
bool is_of_port(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return true;
    default:
      return false;
  }
}

class Watch final : public VerbsWatch {
 public:
  explicit Watch(ContextPtr context) : context_(std::move(context)) {}

  bool take(VerbsEvent* taken) override {
    ibv_async_event event{};
    if (ibv_get_async_event(context_.get(), &event) != 0) return false;
    taken->name = event_name(event.event_type);
    taken->text = ibv_event_type_str(event.event_type);
    taken->port = is_of_port(event.event_type) ? static_cast<std::uint32_t>(event.element.port_num) : 0;
    ibv_ack_async_event(&event);
    return true;
  }

 private:
  ContextPtr context_;
};

}  // namespace

std::unique_ptr<VerbsWatch> watch_device(const std::string& name, std::string* error) {
  const DeviceList list;
  if (*error = list.why_none(); !error->empty()) return nullptr;
  for (ibv_device* device : list.devices()) {
    if (name != ibv_get_device_name(device)) continue;
    ContextPtr context = open_context(device, error);
    if (context == nullptr) return nullptr;
    // take() must not block, so the descriptor is non-blocking.
    const int flags = ::fcntl(context->async_fd, F_GETFL);
    if (flags < 0 || ::fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
      *error = name + ": its events cannot be read: " + std::strerror(errno);
      return nullptr;
    }
    return std::make_unique<Watch>(std::move(context));
  }
  *error = "there is no RDMA device '" + name + "'; there is: " + list.names();
  return nullptr;
}

}  // namespace rdma_rpc::fabric::verbs
