// Encodes and decodes the connect message: the first message of a queue pair's connection, in both directions
// (docs/wire/fabrics.md §9, §10). The message names the queue pair that the sender wants to reach and the
// sender's own queue pair. The first bytes of the message distinguish such a connection from a sideband
// connection to the same address. This file is used by the fabrics that connect by sockets (tcp, and shm with
// passed descriptors), and by the acceptor. The functions are pure, so any thread may call them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rdma_rpc::fabric {

/// Names one queue pair. A token cannot be guessed without having seen the queue pair's address.
using Token = std::array<std::byte, 16>;

/// Compares two tokens in constant time.
bool same(const Token& a, const Token& b);
/// Fills in a random token. Returns false when the system has no random bytes.
bool make_token(Token* token);

/// Size of a connect message; its first four bytes are the magic number, little endian.
inline constexpr std::size_t kConnectMessageBytes = 40;
inline constexpr std::uint32_t kConnectMagic = 0x706d6452;  // "Rdmp"

enum class ConnectKind : std::uint8_t {
  hello = 1,    ///< from the active side, to the queue pair `to`
  welcome = 2,  ///< from the passive side: the queue pairs are connected
  /// from the passive side: this process has no such queue pair. Another server behind the same address may
  /// have such a queue pair.
  unknown = 3,
  refused = 4,  ///< from the passive side: that queue pair expects another peer, or is no longer connecting
};
struct ConnectMessage {
  std::uint32_t magic = 0;
  std::uint8_t version = 0;
  ConnectKind kind = ConnectKind::hello;
  std::uint16_t reserved = 0;
  Token to{}, from{};
};
static_assert(sizeof(ConnectMessage) == kConnectMessageBytes);
ConnectMessage make_connect_message(ConnectKind kind, const Token& to, const Token& from);
/// Returns null when the message is valid, otherwise the reason why it is not valid.
const char* why_not_connect_message(const ConnectMessage& message);

/// Sends a few bytes on a new connection. Returns false when the socket does not accept all of them, or when
/// the connection is lost.
bool send_now(int fd, const void* bytes, std::size_t count);

}  // namespace rdma_rpc::fabric
