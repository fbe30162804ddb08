// Provides AES-256-GCM and ChaCha20-Poly1305 from OpenSSL's libcrypto. The library is the one that the node
// binary contains and exports, or else the system's libcrypto.so.3. This code needs no header of OpenSSL.
// This code is called when sessions are created, on any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "seal/aead.h"

namespace rdma_rpc::seal {

/// Returns the available ciphers, the fastest on this processor first. When the list is empty,
/// why_no_cipher() says why.
std::vector<Cipher> ciphers();
std::string why_no_cipher();

/// Creates an Aead that seals when `seals` is true, and opens when it is false. Returns null, with the reason
/// in `error`, when the cipher is unavailable.
std::unique_ptr<Aead> open_aead(Cipher cipher, const Key& key, bool seals, std::string* error);

}  // namespace rdma_rpc::seal
