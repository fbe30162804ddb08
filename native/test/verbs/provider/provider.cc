// See provider.h.
#include "verbs/provider/provider.h"

#include <dlfcn.h>
#include <rdma/rdma_cma.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <utility>

namespace rdma_rpc::session::test {
namespace {

Script* current = nullptr;
/// The last event of the script that was returned. The library did not make this event, so the library must
/// not acknowledge it.
const ibv_async_event* handed_out = nullptr;

/// Returns a function of the library, which the plug-in has loaded. This function is never called when the
/// plug-in is absent.
template <typename Function>
Function real(const char* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(::dlopen(library, RTLD_LAZY | RTLD_NOLOAD), name));
}

template <typename Function>
Function real_verbs(const char* name) {
  return real<Function>("libibverbs.so.1", name);
}

using PollCq = int (*)(ibv_cq*, int, ibv_wc*);
std::unordered_map<ibv_context*, PollCq> real_polls;

int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) {
  if (current != nullptr && current->mute == cq->context) return 0;
  return real_polls.at(cq->context)(cq, entries, wc);
}

using PostSend = int (*)(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
std::unordered_map<ibv_context*, PostSend> real_posts;

/// Returns a copy of a request with its entries, and with its bytes for IBV_SEND_INLINE, because these belong
/// to the caller. For a bind, it also changes the key of the window, as the library does when it posts.
Script::Missed copy_of(const ibv_send_wr& wr) {
  Script::Missed copy{wr, {wr.sg_list, wr.sg_list + wr.num_sge}, {}, 0};
  if (wr.opcode == IBV_WR_BIND_MW) copy.old_key = wr.bind_mw.mw->rkey;
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) return copy;
  for (const ibv_sge& sge : copy.sges) {
    const auto* from = reinterpret_cast<const std::byte*>(sge.addr);
    copy.inline_bytes.insert(copy.inline_bytes.end(), from, from + sge.length);
  }
  copy.sges = {{reinterpret_cast<std::uintptr_t>(copy.inline_bytes.data()),
                static_cast<std::uint32_t>(copy.inline_bytes.size()), 0}};
  copy.wr.num_sge = 1;
  return copy;
}

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  const PostSend post = real_posts.at(qp->context);
  if (current != nullptr && wr->opcode == IBV_WR_RDMA_WRITE && wr->num_sge == 0)
    current->empty_writes[qp].push_back(current->seconds);
  if (current == nullptr || current->dozes != qp) return post(qp, wr, bad);
  if (current->missed.empty() && current->doorbells_before-- == 0) {
    ++current->doorbells_missed;
    for (; wr != nullptr; wr = wr->next) current->missed.push_back(copy_of(*wr));
    return 0;
  }
  for (; !current->missed.empty(); current->missed.pop_front()) {
    Script::Missed& late = current->missed.front();
    late.wr.next = nullptr;
    late.wr.sg_list = late.sges.data();
    const bool binds = late.wr.opcode == IBV_WR_BIND_MW;
    const std::uint32_t key = binds ? std::exchange(late.wr.bind_mw.mw->rkey, late.old_key) : 0;
    const int error = post(qp, &late.wr, bad);
    if (binds) late.wr.bind_mw.mw->rkey = key;
    if (error != 0) return error;
  }
  return post(qp, wr, bad);
}

/// Replaces the functions for polling and posting, which are pointers in each context.
void put_in_front(ibv_context* context) {
  if (context->ops.poll_cq == poll_cq) return;
  real_polls[context] = std::exchange(context->ops.poll_cq, poll_cq);
  real_posts[context] = std::exchange(context->ops.post_send, post_send);
}

}  // namespace

Provider::Provider() { current = &script_; }
Provider::~Provider() { current = nullptr; }

void Provider::report(ibv_event_type type, ibv_context* context, ibv_qp* qp, ibv_cq* cq) {
  Script::Report report{context, {}};
  report.event.event_type = type;
  if (qp != nullptr) {
    report.event.element.qp = qp;
  } else if (cq != nullptr) {
    report.event.element.cq = cq;
  } else {
    report.event.element.port_num = 1;
  }
  script_.reports.push_back(report);
}

}  // namespace rdma_rpc::session::test

using namespace rdma_rpc::session::test;

#define IN_FRONT extern "C" __attribute__((visibility("default")))

IN_FRONT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel,
                               int vector) {
  int given = entries;
  if (current != nullptr && current->next_cq_entries != 0)
    given = std::min(entries, std::exchange(current->next_cq_entries, 0));
  static const auto create = real_verbs<decltype(&ibv_create_cq)>("ibv_create_cq");
  ibv_cq* cq = create(context, given, owner, channel, vector);
  if (cq == nullptr) return cq;
  if (given < entries) cq->cqe = entries;
  put_in_front(context);
  if (current != nullptr) current->contexts.push_back(context);
  return cq;
}

IN_FRONT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  static const auto create = real_verbs<decltype(&ibv_create_qp)>("ibv_create_qp");
  if (current != nullptr &&
      (current->refuses_qps != 0 || attributes->cap.max_inline_data > current->inline_max)) {
    errno = current->refuses_qps != 0 ? current->refuses_qps : EINVAL;
    return nullptr;
  }
  ibv_qp* qp = create(pd, attributes);
  if (current != nullptr && qp != nullptr) current->queue_pairs.push_back(qp);
  if (current != nullptr && qp != nullptr)
    attributes->cap.max_inline_data = std::min(attributes->cap.max_inline_data, current->inline_max);
  return qp;
}

IN_FRONT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  static const auto modify = real_verbs<decltype(&ibv_modify_qp)>("ibv_modify_qp");
  ibv_qp_attr given = *attributes;
  if (current != nullptr) {
    current->told.push_back({qp, *attributes, mask});
    if (given.pkey_index == current->pkey_index) given.pkey_index = 0;
  }
  return modify(qp, &given, mask);
}

IN_FRONT int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attributes, int* mask) {
  static const auto init = real<decltype(&rdma_init_qp_attr)>("librdmacm.so.1", "rdma_init_qp_attr");
  const int result = init(id, attributes, mask);
  if (result == 0 && current != nullptr && current->pkey_index != 0 && (*mask & IBV_QP_PKEY_INDEX) != 0)
    attributes->pkey_index = current->pkey_index;
  return result;
}

IN_FRONT int rdma_set_option(rdma_cm_id* id, int level, int name, void* value, std::size_t bytes) {
  static const auto set = real<decltype(&rdma_set_option)>("librdmacm.so.1", "rdma_set_option");
  if (current != nullptr && level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_TOS)
    current->tos.push_back(*static_cast<const std::uint8_t*>(value));
  return set(id, level, name, value, bytes);
}

IN_FRONT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  if (current != nullptr && !current->reports.empty() && current->reports.front().context == context) {
    *event = current->reports.front().event;
    current->reports.pop_front();
    handed_out = event;
    return 0;
  }
  static const auto get = real_verbs<decltype(&ibv_get_async_event)>("ibv_get_async_event");
  return get(context, event);
}

IN_FRONT void ibv_ack_async_event(ibv_async_event* event) {
  if (event == handed_out) {
    handed_out = nullptr;
    return;
  }
  static const auto acknowledge = real_verbs<decltype(&ibv_ack_async_event)>("ibv_ack_async_event");
  acknowledge(event);
}

IN_FRONT int timerfd_settime(int fd, int flags, const itimerspec* when, itimerspec* before) noexcept {
  itimerspec given = *when;
  const bool second = flags == 0 && when->it_value.tv_sec == 1 && when->it_value.tv_nsec == 0;
  if (second && current != nullptr) {
    given.it_value = {0, current->second_ns};
    ++current->seconds;
  }
  static const auto set = real<decltype(&::timerfd_settime)>("libc.so.6", "timerfd_settime");
  return set(fd, flags, &given, before);
}
