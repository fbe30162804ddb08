// One queue pair's way to its peer, from the address blobs to the end of the connection: by rdma_cm
// (cm_connection.h) or by what the blobs say (sideband_connection.h). Made and asked by QueuePair, told of
// time by Attempts. On the device's thread.
#pragma once

#include <string>

#include "fabric/verbs/address/address.h"
#include "fabric/verbs/objects.h"

namespace rdma_rpc::fabric::verbs {

class Connection {
 public:
  virtual ~Connection() = default;
  /// Goes on by itself from here, to QueuePair::connected() or fail(). Not empty: why it cannot
  /// even begin.
  virtual std::string start(const Address& peer) = 0;
  /// A thread of its own still uses the queue pair.
  virtual bool busy() const = 0;
  /// The queue pair is in ERR: tells the peer.
  virtual void disconnect() = 0;
  /// Data came before the queue pair is said to be connected.
  virtual void data_came() {}
  /// Takes the queue pair to destroy it.
  virtual void close(QueueObjects queue) = 0;

  // For Attempts.
  virtual void call_returned() = 0;
  virtual void expire() = 0;
};

}  // namespace rdma_rpc::fabric::verbs
