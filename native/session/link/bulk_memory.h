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
bool collect_pieces(Link& link, const BulkSubmission& submission, std::vector<Piece>& pieces,
                    boundary::Reason& reason);
/// Replaces what the submission would lend by a copy, unless it is larger than the arena. Returns false when
/// there is no room now; then everything is as it was.
bool copy_pieces(Link& link, const BulkSubmission& submission, std::vector<Piece>& pieces);
/// The message is no longer in use.
void release_pieces(Link& link, std::vector<Piece>& pieces);

}  // namespace rdma_rpc::session
