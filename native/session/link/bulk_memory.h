// Collects the memory of a bulk message: arena blocks and registered buffers that are kept in use, or one
// copy of the message when it cannot be sent in place. Both endpoints use this class, on the context's
// thread.
#pragma once

#include <vector>

#include "session/exposure.h"
#include "session/link/link.h"
#include "session/submission.h"

namespace rdma_rpc::session {

/// Acquires all memory of the submission. When that fails, releases the memory again and returns false, with
/// the reason.
bool collect_gather_entries(Link& link, const BulkSubmission& submission,
                            std::vector<GatherEntry>& gather_entries, boundary::Reason& reason);
/// Replaces memory of the application by a copy, unless the message is larger than the arena. Returns false,
/// and changes nothing, when the arena has no room now.
bool copy_gather_entries(Link& link, const BulkSubmission& submission,
                         std::vector<GatherEntry>& gather_entries);
/// Releases the memory of a message that is no longer in use.
void release_gather_entries(Link& link, std::vector<GatherEntry>& gather_entries);

}  // namespace rdma_rpc::session
