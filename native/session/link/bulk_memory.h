// The memory of a bulk message: blocks of the arena and registered buffers held while it is in use, or one
// copy when that cannot be. Both endpoints use it, on the context's thread.
#pragma once

#include <vector>

#include "session/exposure.h"
#include "session/link/link.h"
#include "session/submission.h"

namespace rdma_rpc::session {

/// Takes hold of all that the submission is made of. Returns false, with the reason, when that cannot be;
/// then nothing is held.
bool collect_gather_entries(Link& link, const BulkSubmission& submission,
                            std::vector<GatherEntry>& gather_entries, boundary::Reason& reason);
/// Replaces what the submission would lend by a copy, unless it is larger than the arena. Returns false when
/// there is no room now; then everything is as it was.
bool copy_gather_entries(Link& link, const BulkSubmission& submission,
                         std::vector<GatherEntry>& gather_entries);
/// The message is no longer in use.
void release_gather_entries(Link& link, std::vector<GatherEntry>& gather_entries);

}  // namespace rdma_rpc::session
