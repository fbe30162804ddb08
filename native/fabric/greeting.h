// What a connection of a queue pair begins with, in both directions (docs/wire/fabrics.md §9, §10): which
// queue pair it wants, and whose it is. By its first bytes whoever listens at an address tells it from a
// sideband connection. Used by the fabrics that connect by sockets, tcp and shm by descriptors, and by the
// acceptor. Pure functions, for any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rdma_rpc::fabric {

/// Names one queue pair; nobody who has not seen its address can guess it.
using Token = std::array<std::byte, 16>;

/// In the same time wherever they differ.
bool same(const Token& a, const Token& b);
/// False: the system has no random bytes.
bool make_token(Token* token);

/// Bytes of a greeting, and the first four of them, little endian.
inline constexpr std::size_t kGreetingBytes = 40;
inline constexpr std::uint32_t kGreetingMagic = 0x706d6452;  // "Rdmp"

enum class Say : std::uint8_t {
  hello = 1,    ///< active: to the queue pair `to`
  welcome = 2,  ///< passive: connected
  unknown = 3,  ///< passive: no such queue pair here; another server behind the same address may have it
  refused = 4,  ///< passive: that queue pair expects somebody else, or nobody any more
};
struct Greeting {
  std::uint32_t magic = 0;
  std::uint8_t version = 0;
  Say say = Say::hello;
  std::uint16_t reserved = 0;
  Token to{}, from{};
};
static_assert(sizeof(Greeting) == kGreetingBytes);
Greeting make_greeting(Say say, const Token& to, const Token& from);
/// Null when it is one, else why not.
const char* why_no_greeting(const Greeting& greeting);

/// Of these few bytes, on a connection that is new. False: it does not take them, or is lost.
bool say(int fd, const void* bytes, std::size_t count);

}  // namespace rdma_rpc::fabric
