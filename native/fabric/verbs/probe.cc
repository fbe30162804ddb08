// See probe.h.
#include "fabric/verbs/probe.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "fabric/verbs/memory.h"
#include "fabric/verbs/optional.h"
#include "fabric/verbs/refusal.h"

namespace rdma_rpc::fabric::verbs {
namespace {

constexpr std::uint32_t kSgeMax = 16, kInlineMax = 512;
constexpr int kReadsMax = 128;
/// Up to this size, two copies cost less than windows and the round trips of a READ. This was measured on
/// soft-RoCE (bench/HISTORY.md). For a NIC it was computed: two copies of 3 us, compared with two round trips
/// and four posts.
constexpr std::uint32_t kSegmentedBytes = 32 * 1024;

/// Returns whether the device can make a queue pair that sends `bytes` inline. Sets `given` to the inline
/// size that the queue pair really has.
bool takes_inline(ibv_pd* pd, ibv_cq* cq, std::uint32_t sges, std::uint32_t bytes, std::uint32_t* given) {
  ibv_qp_init_attr init = reliable(cq, 16, 16, sges, bytes);
  errno = 0;
  const QpPtr qp(ibv_create_qp(pd, &init));
  if (qp != nullptr) *given = std::min(init.cap.max_inline_data, kInlineMax);
  return qp != nullptr;
}

/// Finds the largest inline size of a queue pair. Returns "", or why the device has no reliable queue pair.
/// The size need not be a power of two: irdma has 101 bytes.
std::string probe_inline(ibv_pd* pd, ibv_cq* cq, std::uint32_t sges, std::uint32_t* inline_bytes) {
  if (takes_inline(pd, cq, sges, kInlineMax, inline_bytes)) return "";
  if (takes_inline(pd, cq, sges, 0, inline_bytes)) {
    std::uint32_t taken = *inline_bytes, refused = kInlineMax;
    while (refused - taken > 1) {
      const std::uint32_t middle = taken + (refused - taken) / 2;
      std::uint32_t given = 0;
      if (takes_inline(pd, cq, sges, middle, &given)) {
        taken = std::max(middle, given);
      } else {
        refused = middle;
      }
    }
    *inline_bytes = taken;
    return "";
  }
  if (errno == ENOMEM || errno == EAGAIN || errno == EMFILE || errno == ENFILE)
    return "cannot create a queue pair: " + why_refused(errno);
  return "has no reliable connections (RC): " +
         (errno == 0 ? std::string("its driver gives no reason") : std::strerror(errno)) +
         (pd->context->device->transport_type == IBV_TRANSPORT_UNSPECIFIED
              ? "; those of its own kind (EFA's SRD, say) are not supported"
              : "");
}

bool probe_on_demand(ibv_context* context) {
  ibv_device_attr_ex attr{};
  constexpr std::uint32_t kNeeded =
      IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
  return ibv_query_device_ex(context, nullptr, &attr) == 0 &&
         (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0 &&
         (attr.odp_caps.per_transport_caps.rc_odp_caps & kNeeded) == kNeeded;
}

/// Returns whether the driver supports dmabuf. A driver that does rejects this descriptor as invalid; any
/// other driver reports that it does not support the operation.
bool probe_dmabuf(ibv_pd* pd) {
  errno = 0;
  const MrPtr mr(reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE));
  return mr == nullptr && errno == EBADF;
}

}  // namespace

std::string probe(ibv_pd* pd, Probed* probed) {
  ibv_context* context = pd->context;
  const std::string name = ibv_get_device_name(context->device);
  ibv_device_attr attr{};
  if (ibv_query_device(context, &attr) != 0) return name + " does not say what it can do (ibv_query_device)";
  const CqPtr cq(ibv_create_cq(context, 16, nullptr, nullptr, 0));
  if (cq == nullptr) return name + " cannot create a completion queue: " + why_refused(errno);
  const bool iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
  Capabilities& can = probed->capabilities;
  can.name = name;
  can.max_sge = std::min(static_cast<std::uint32_t>(attr.max_sge), kSgeMax);
  can.max_sge_read =
      attr.max_sge_rd > 0 ? std::min(static_cast<std::uint32_t>(attr.max_sge_rd), can.max_sge) : can.max_sge;
  can.max_qp_wr = static_cast<std::uint32_t>(attr.max_qp_wr);
  can.max_rd_atomic = static_cast<std::uint32_t>(std::clamp(attr.max_qp_init_rd_atom, 1, kReadsMax));
  if (const std::string why = probe_inline(pd, cq.get(), can.max_sge, &can.max_inline); !why.empty())
    return name + " " + why;
  // iWARP devices are left out, because none was available for a test.
  if (!iwarp && attr.max_srq > 0) {
    ibv_srq_init_attr init{nullptr, {16, 1, 0}};
    // All shared receives may complete on one of the device's completion queues, in addition to the sends.
    if (SrqPtr(ibv_create_srq(pd, &init)) != nullptr)
      can.max_srq_wr = static_cast<std::uint32_t>(std::min(attr.max_srq_wr, attr.max_cqe / 2));
  }
  can.immediate = can.send_immediate = !iwarp;
  can.atomics = !iwarp && attr.atomic_cap != IBV_ATOMIC_NONE;
  can.solicited = true;
  if (iwarp) {
    const std::string why = "iWARP devices have neither immediates nor atomics";
    for (const Feature feature : {Feature::send_with_imm, Feature::write_with_imm, Feature::atomics})
      can.reasons[feature] = why;
  }
  can.reasons[Feature::reset] =
      "completions from before the reset could not be told from later ones; make another queue pair";
  can.reasons[Feature::xrc] =
      (attr.device_cap_flags & IBV_DEVICE_XRC) != 0
          ? "the device has them, but they are not offered, because no device for tests has them (soft-RoCE "
            "refuses them: EOPNOTSUPP)"
          : "the device has none (IBV_DEVICE_XRC is not set)";
  can.drains = !iwarp;
  if (iwarp) can.reasons[Feature::drain] = "iWARP devices have no such states";
  can.srq_limit = can.max_srq_wr != 0;
  can.read_sink_needs_remote_write = iwarp;
  can.active_side_sends_first = iwarp;
  can.pins_memory = true;
  can.segmented_bytes = kSegmentedBytes;
  can.exposes_any_memory = true;
  can.windows = (attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0 &&
                MwPtr(ibv_alloc_mw(pd, IBV_MW_TYPE_2)) != nullptr;
  can.on_demand = probe_on_demand(context);
  can.dmabuf = probe_dmabuf(pd);
  probed->attributes = attr;
  probed->driver = soft::driver_of(attr);
  soft::restrict_to(probed->driver, iwarp, &can);
  probed->reads_served = static_cast<std::uint16_t>(std::clamp(attr.max_qp_rd_atom, 1, kReadsMax));
  probed->cq_entries_max = static_cast<std::uint32_t>(attr.max_cqe);
  return "";
}

ibv_qp_init_attr reliable(ibv_cq* cq, std::uint32_t sends, std::uint32_t receives, std::uint32_t sges,
                          std::uint32_t inline_bytes) {
  ibv_qp_init_attr init{};
  init.send_cq = cq;
  init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {sends, receives, sges, 1, inline_bytes};
  return init;
}

}  // namespace rdma_rpc::fabric::verbs
