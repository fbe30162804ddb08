// AES-256-GCM and ChaCha20-Poly1305 by OpenSSL's libcrypto: that of the process, as the node binary has and
// exports it, else the system's libcrypto.so.3. No header of OpenSSL is needed. Called when sessions are
// made, on any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "seal/aead.h"

namespace rdma_rpc::seal {

/// What can be had here, the fastest for this processor first. Empty: why_no_cipher() says why.
std::vector<Cipher> ciphers();
std::string why_no_cipher();

/// For one of the two functions. Null, and why, when it cannot be had.
std::unique_ptr<Aead> open_aead(Cipher cipher, const Key& key, bool seals, std::string* error);

}  // namespace rdma_rpc::seal
