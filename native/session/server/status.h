// Lists the status codes of gRPC (statuscodes.md) with which a session itself ends a call, without asking the
// application. The parts of ServerEndpoint use them on the session's thread.
#pragma once

#include <cstdint>

namespace rdma_rpc::session {

inline constexpr std::uint8_t kDeadlineExceeded = 4;
inline constexpr std::uint8_t kResourceExhausted = 8;
inline constexpr std::uint8_t kInternal = 13;

}  // namespace rdma_rpc::session
