// The books at the end of a test: everything that a Side has taken has been given back. On the test's thread.
#pragma once

#include <string>

#include "session/sides/side.h"

namespace rdma_rpc::session::test {

/// Ends the side's context. What is left of slots, blocks, pins, windows, regions, queue pairs and
/// descriptors goes to the ledger as a violation. The device's own counters are compared with `before`, what
/// else is open on it.
void audit(Side& side, const std::string& name, const fabric::DeviceCounters& before = {});

/// While its sessions are up: when every call has ended, each receive is posted again. One that is not would
/// be missed by nobody until the last is gone.
void audit_receives(Side& side, std::uint32_t session, const std::string& name);

}  // namespace rdma_rpc::session::test
