// Checks at the end of a test that a Side has released all its resources. This code runs on the test's
// thread.
#pragma once

#include <string>

#include "session/sides/side.h"

namespace rdma_rpc::session::test {

/// Ends the side's context. Slots, blocks, pins, windows, regions, queue pairs and descriptors that are left
/// become violations in the ledger. The device's own counters are compared with `before`, which counts the
/// objects that other code has open on the device.
void audit(Side& side, const std::string& name, const fabric::DeviceCounters& before = {});

/// Checks that each receive is posted again. Must be called while the side's sessions are up, after all calls
/// have ended. Without this check, a lost receive would be noticed only when no receive is left.
void audit_receives(Side& side, std::uint32_t session, const std::string& name);

}  // namespace rdma_rpc::session::test
