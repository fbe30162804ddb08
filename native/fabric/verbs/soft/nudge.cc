// See nudge.h.
#include "fabric/verbs/soft/nudge.h"

#include <bit>

#include "fabric/verbs/queue/queue_pair.h"

namespace rdma_rpc::fabric::verbs::soft {

bool Nudge::second() {
  const bool posted = qp_.sends().newest() + 1 != 0;
  const bool may_be_unheard = posted && qp_.receives().head() == 0 && unheard_s_ < 1u << (kSendsMax - 1) &&
                              qp_.has_room_for_internal();
  // The WRITE is unsignaled, because earlier requests may complete after it. The WRITE is not counted among
  // the requests that the device has.
  if (may_be_unheard && std::has_single_bit(++unheard_s_)) qp_.post_empty_write(qp_.sends().newest(), 0);
  return may_be_unheard;
}

}  // namespace rdma_rpc::fabric::verbs::soft
