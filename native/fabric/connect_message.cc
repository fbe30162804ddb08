// See connect_message.h.
#include "fabric/connect_message.h"

#include <sys/random.h>
#include <sys/socket.h>

#include "fabric/versions.h"

namespace rdma_rpc::fabric {

bool same(const Token& a, const Token& b) {
  std::byte differ{};
  for (std::size_t i = 0; i < a.size(); ++i) differ |= a[i] ^ b[i];
  return differ == std::byte{};
}

bool make_token(Token* token) {
  return ::getrandom(token->data(), token->size(), 0) == static_cast<ssize_t>(token->size());
}

ConnectMessage make_connect_message(ConnectKind kind, const Token& to, const Token& from) {
  return {kConnectMagic, kConnectVersion, kind, 0, to, from};
}

const char* why_not_connect_message(const ConnectMessage& message) {
  if (message.magic != kConnectMagic) return "the received bytes are not a connect message of this fabric";
  if (message.version != kConnectVersion) return "the connect message has another version than this side's";
  if (message.reserved != 0) return "the reserved bytes of the connect message are not 0";
  return nullptr;
}

bool send_now(int fd, const void* bytes, std::size_t count) {
  return ::send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(count);
}

}  // namespace rdma_rpc::fabric
