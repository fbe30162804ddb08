// Opens TCP sockets and sets their options. This file is used when a connection is opened, accepted or lost,
// on the device's thread.
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
/// Closes with a reset. The peer is notified at once, and bytes that are still in transit are dropped.
void reset_connection(UniqueFd& fd);
/// Returns the text of strerror, with an explanation if that text is not clear.
std::string why_lost(int error);

}  // namespace rdma_rpc::fabric::tcp
