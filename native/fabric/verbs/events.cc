// What a device reports by itself, apart from completions: queue pairs that broke, ports that came and went,
// its own removal. On the device's thread, when a sleeper wakes.
#include <cerrno>

#include "fabric/verbs/device.h"
#include "fabric/verbs/queue_pair.h"

namespace rdma_rpc::fabric::verbs {

void Device::read_async_events() {
  if (cm_ != nullptr) cm_->progress();
  ibv_async_event event{};
  while (!gone_ && ibv_get_async_event(context_.get(), &event) == 0) {
    handle(event);
    // Destroying the object that an event is about waits for this.
    ibv_ack_async_event(&event);
  }
}

void Device::handle(const ibv_async_event& event) {
  const auto fail_those = [this](auto&& which) {
    for (const Place& place : places_) {
      if (place.qp != nullptr && which(*place.qp)) place.qp->to_error();
    }
  };
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      fail_those([&](const QueuePair& qp) { return qp.is(event.element.qp); });
      break;
    case IBV_EVENT_COMM_EST:
      for (const Place& place : places_) {
        if (place.qp != nullptr && place.qp->is(event.element.qp)) place.qp->data_came();
      }
      break;
    case IBV_EVENT_CQ_ERR:
      fail_those([&](const QueuePair& qp) { return qp.is_on(event.element.cq); });
      break;
    case IBV_EVENT_DEVICE_FATAL:
      gone_ = true;
      for (const Place& place : places_) {
        if (place.qp != nullptr) place.qp->lose_device();
      }
      break;
    default:  // ports and GIDs: the retries of a queue pair decide what becomes of it
      break;
  }
}

}  // namespace rdma_rpc::fabric::verbs
