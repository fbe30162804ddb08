// Checks at the end of a test that a Side has released everything that it has taken. On the test's thread.
#pragma once

#include <string>

#include "session/sides/side.h"

namespace rdma_rpc::session::test {

/// Ends the side's context. Slots, blocks, pins, windows, regions, queue pairs and descriptors that are left
/// become violations in the ledger. The device's own counters are compared with `before`, the objects that
/// others have open on it.
void audit(Side& side, const std::string& name, const fabric::DeviceCounters& before = {});

/// Checks, while its sessions are up and all calls have ended, that each receive is posted again. Otherwise a
/// lost receive would be noticed only when the last one is lost.
void audit_receives(Side& side, std::uint32_t session, const std::string& name);

}  // namespace rdma_rpc::session::test
