// TCP sockets and their options. Used wherever a connection is made, accepted or lost, on the device's
// thread.
#pragma once

#include <string>

#include "fabric/tcp/tcp.h"
#include "fabric/unique_fd.h"

namespace rdma_rpc::fabric::tcp {

/// Sets the options of a queue pair's connection: no delay, a short queue of unsent bytes, and detection of a
/// peer that does not answer. Returns "" on success, or why that failed.
std::string prepare(int fd, const TcpOptions& options);
/// Makes a later close send a reset and drop unsent bytes.
void reset_on_close(int fd);
/// Closes with a reset: the peer is notified at once, and bytes still on their way are dropped.
void reset_connection(UniqueFd& fd);
/// strerror, with an explanation where that text is not clear.
std::string why_lost(int error);

}  // namespace rdma_rpc::fabric::tcp
