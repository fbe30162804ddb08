// Handles the events that a device reports in addition to completions: broken queue pairs, ports that go up
// and down, and the removal of the device. Runs on the device's thread, when a sleeper wakes.
#include <cerrno>

#include "fabric/verbs/device.h"
#include "fabric/verbs/queue/queue_pair.h"
#include "fabric/verbs/queue/receive_queue.h"

namespace rdma_rpc::fabric::verbs {
namespace {

/// Limit of events that are handled at once. Soft-RoCE reports a full completion queue as failed again and
/// again, until the queue is polled.
constexpr int kReportsAtOnce = 16;

}  // namespace

void Device::read_async_events() {
  if (cm_ != nullptr) cm_->progress();
  if (cm_ != nullptr && cm_->removed() && !gone_) be_removed();
  attempts_.progress();
  watchdog_.progress();
  ibv_async_event event{};
  for (int i = 0; i < kReportsAtOnce && !dead_ && ibv_get_async_event(context_.get(), &event) == 0; ++i) {
    handle(event);
    // This acknowledgement must come first: destroying the object of an event waits for it.
    ibv_ack_async_event(&event);
  }
}

/// Fails all queue pairs when rdma_cm reports that the device is removed. A driver that supports removal
/// while in use ends everything with IBV_EVENT_DEVICE_FATAL. Other drivers (soft-RoCE, soft-iWARP) report
/// nothing, keep working, and wait until no process has the device open.
void Device::be_removed() {
  gone_ = true;
  for (const Slot& slot : slots_) {
    if (slot.qp != nullptr) slot.qp->fail(capabilities().name + " was removed");
  }
}

bool Device::check_requests() {
  bool waiting = false;
  for (const Slot& slot : slots_) {
    if (slot.qp != nullptr && slot.qp->check_requests()) waiting = true;
  }
  return waiting;
}

/// Queues the event for poll_events() if the user may want to know of it.
void Device::tell(const ibv_async_event& event) {
  using Kind = AsyncEvent::Kind;
  switch (event.event_type) {
    case IBV_EVENT_SQ_DRAINED:
      return note_event({.kind = Kind::sq_drained, .qp_num = event.element.qp->qp_num});
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return note_event({.kind = Kind::qp_fatal, .qp_num = event.element.qp->qp_num});
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      for (const ReceiveQueue* receives : receive_queues_) {
        if (receives->srq().get() == event.element.srq)
          note_event({.kind = Kind::srq_limit_reached, .receives = receives});
      }
      return;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
      if (event.element.port_num != port_.number) return;
      return note_event(
          {.kind = event.event_type == IBV_EVENT_PORT_ERR ? Kind::port_error : Kind::port_active});
    case IBV_EVENT_DEVICE_FATAL:
      return note_event({.kind = Kind::device_fatal});
    default:
      return;
  }
}

void Device::lose_completions(const ibv_cq* cq, const std::string& why) {
  for (const Slot& slot : slots_) {
    if (slot.qp != nullptr && slot.qp->is_on(cq)) slot.qp->lose_completions(capabilities().name + why);
  }
}

void Device::handle(const ibv_async_event& event) {
  tell(event);
  const auto fail_those = [this](const std::string& why, auto&& which) {
    for (const Slot& slot : slots_) {
      if (slot.qp != nullptr && which(*slot.qp)) slot.qp->fail(capabilities().name + why);
    }
  };
  const auto concerned = [&](const QueuePair& qp) { return qp.is(event.element.qp); };
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
      fail_those(" reports that the queue pair has failed (IBV_EVENT_QP_FATAL)", concerned);
      break;
    case IBV_EVENT_QP_REQ_ERR:
      fail_those(" reports a request of the peer that it cannot carry out (IBV_EVENT_QP_REQ_ERR)", concerned);
      break;
    case IBV_EVENT_QP_ACCESS_ERR:
      fail_those(
          " reports a request of the peer for memory that it has no right to (IBV_EVENT_QP_ACCESS_ERR)",
          concerned);
      break;
    case IBV_EVENT_COMM_EST:
      for (const Slot& slot : slots_) {
        if (slot.qp != nullptr && slot.qp->is(event.element.qp)) slot.qp->data_came();
      }
      break;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      for (const Slot& slot : slots_) {
        if (slot.qp != nullptr && concerned(*slot.qp)) slot.qp->takes_no_more();
      }
      break;
    case IBV_EVENT_SRQ_ERR:
      fail_those(" reports that the shared receives have failed (IBV_EVENT_SRQ_ERR)",
                 [&](const QueuePair& qp) { return qp.is_on(event.element.srq); });
      break;
    case IBV_EVENT_CQ_ERR:
      lose_completions(event.element.cq, " reports that the completion queue has failed (IBV_EVENT_CQ_ERR)");
      break;
    case IBV_EVENT_DEVICE_FATAL:
      gone_ = dead_ = true;
      for (const Slot& slot : slots_) {
        if (slot.qp != nullptr)
          slot.qp->lose_device(capabilities().name + " was removed, or has failed (IBV_EVENT_DEVICE_FATAL)");
      }
      break;
    case IBV_EVENT_PORT_ACTIVE:
      port_state_.forget();
      if (cm_ != nullptr && event.element.port_num == port_.number) cm_->port_came_up();
      break;
    case IBV_EVENT_PORT_ERR:
      port_state_.forget();
      break;
    // Existing connections continue, or end when their retries fail. Later connections need the new
    // addresses.
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
      if (event.element.port_num == port_.number) refresh_port();
      break;
    default:
      break;
  }
}

}  // namespace rdma_rpc::fabric::verbs
