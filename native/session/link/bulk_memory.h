// The memory of a bulk message: blocks of the arena and registered buffers held while it is in use, or one
// copy when that cannot be. Both endpoints use it, on the context's thread.
#pragma once

#include <vector>

#include "session/exposure.h"
#include "session/link/link.h"
#include "session/submission.h"

namespace rdma_rpc::session {

/// Acquires all memory of the submission. Returns false, with the reason, when that fails; nothing is held
/// then.
bool collect_gather_entries(Link& link, const BulkSubmission& submission,
                            std::vector<GatherEntry>& gather_entries, boundary::Reason& reason);
/// Replaces memory of the application by a copy, unless it is larger than the arena. Returns false, without
/// any effect, when there is no room now.
bool copy_gather_entries(Link& link, const BulkSubmission& submission,
                         std::vector<GatherEntry>& gather_entries);
/// Releases the memory of a message that is no longer in use.
void release_gather_entries(Link& link, std::vector<GatherEntry>& gather_entries);

}  // namespace rdma_rpc::session
