// A TCP socket and its options. Used wherever a connection is made, taken or lost, on the device's thread.
#pragma once

#include <string>

#include "fabric/tcp/tcp.h"
#include "fabric/unique_fd.h"

namespace rdma_rpc::fabric::tcp {

/// What every connection of a queue pair has: no delay, a short queue of unsent bytes, and a peer that
/// answers nothing is noticed. Empty, or why not.
std::string prepare(int fd, const TcpOptions& options);
/// From now on closing it sends a reset, and drops what is still on its way.
void reset_on_close(int fd);
/// The peer is to hear of it at once, and of nothing that is still on its way.
void reset_connection(UniqueFd& fd);
/// strerror, with what it means where that is not plain.
std::string why_lost(int error);

}  // namespace rdma_rpc::fabric::tcp
