// Connects one queue pair to its peer, from the address blobs to the end of the connection: by rdma_cm
// (cm_connection.h) or with the content of the blobs alone (sideband_connection.h). QueuePair makes and uses
// this object. Attempts reports expired time limits. This code runs on the device's thread.
#pragma once

#include <string>

#include "fabric/verbs/address/address.h"
#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

class Connection {
 public:
  virtual ~Connection() = default;
  /// Starts the attempt, which then continues by itself to QueuePair::connected() or fail(). Returns "", or
  /// why the attempt cannot begin.
  virtual std::string start(const Address& peer) = 0;
  /// Makes the last step of QpOptions::stepwise, from RTR to RTS. Returns "", or why the step cannot be made.
  virtual std::string go_to_rts() { return "it makes all steps by itself"; }
  /// Returns whether the connection's thread still uses the queue pair.
  virtual bool busy() const = 0;
  /// Notifies the peer that the queue pair is in ERR.
  virtual void disconnect() = 0;
  /// Handles data that arrives before the queue pair counts as connected.
  virtual void data_came() {}
  /// Takes over the queue pair and destroys it.
  virtual void close(QueueObjects queue) = 0;

  // The following functions are for Attempts.
  virtual void call_returned() = 0;
  virtual void expire() = 0;
};

}  // namespace rdma_rpc::fabric::verbs
