// See libcrypto.h.
#include "seal/libcrypto.h"

#include <dlfcn.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace rdma_rpc::seal {
namespace {

struct Context;
struct CipherType;
struct Library {
  Context* (*context_new)();
  void (*context_free)(Context*);
  const CipherType* (*aes)();
  const CipherType* (*chacha)();
  int (*init)(Context*, const CipherType*, void* engine, const unsigned char* key, const unsigned char* iv,
              int seals);
  int (*update)(Context*, unsigned char* to, int* count, const unsigned char* from, int bytes);
  int (*finish)(Context*, unsigned char* to, int* count);
  int (*control)(Context*, int what, int number, void* with);
};

// Constants of openssl/evp.h, since OpenSSL 1.1.
constexpr int kGetTag = 0x10, kSetTag = 0x11;

constexpr const char* kSystem = "libcrypto.so.3";

template <class F>
bool take(void* from, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(from, name));
  return function != nullptr;
}

bool take_all(void* from, Library& library) {
  return take(from, "EVP_CIPHER_CTX_new", library.context_new) &&
         take(from, "EVP_CIPHER_CTX_free", library.context_free) &&
         take(from, "EVP_aes_256_gcm", library.aes) && take(from, "EVP_chacha20_poly1305", library.chacha) &&
         take(from, "EVP_CipherInit_ex", library.init) && take(from, "EVP_CipherUpdate", library.update) &&
         take(from, "EVP_CipherFinal_ex", library.finish) &&
         take(from, "EVP_CIPHER_CTX_ctrl", library.control);
}

/// Returns the library, or null when the machine has none. The library is searched for once, and stays
/// loaded.
const Library* library() {
  static const struct Found {
    Library library{};
    bool there = false;
    Found() {
      there = take_all(RTLD_DEFAULT, library);
      if (there) return;
      void* system = ::dlopen(kSystem, RTLD_NOW | RTLD_LOCAL);
      there = system != nullptr && take_all(system, library);
    }
  } found;
  return found.there ? &found.library : nullptr;
}

bool has_aes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
  const unsigned long can = ::getauxval(AT_HWCAP);
  return (can & HWCAP_AES) != 0 && (can & HWCAP_PMULL) != 0;
#else
  return false;
#endif
}

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

class LibcryptoAead final : public Aead {
 public:
  LibcryptoAead(const Library& library, Context* context) : library_(library), context_(context) {}
  ~LibcryptoAead() override { library_.context_free(context_); }

  bool seal(const Nonce& nonce, std::span<std::byte> bytes, std::byte* tag) override {
    return carry_out(nonce, bytes, nullptr) &&
           library_.control(context_, kGetTag, static_cast<int>(kTagBytes), tag) == 1;
  }
  bool open(const Nonce& nonce, std::span<std::byte> bytes, const std::byte* tag) override {
    return carry_out(nonce, bytes, tag);
  }

 private:
  bool carry_out(const Nonce& nonce, std::span<std::byte> bytes, const std::byte* tag) {
    int count = 0;
    unsigned char nothing[16];
    if (library_.init(context_, nullptr, nullptr, nullptr, raw(nonce.data()), -1) != 1) return false;
    if (tag != nullptr &&
        library_.control(context_, kSetTag, static_cast<int>(kTagBytes), const_cast<std::byte*>(tag)) != 1)
      return false;
    if (!bytes.empty() && library_.update(context_, raw(bytes.data()), &count, raw(bytes.data()),
                                          static_cast<int>(bytes.size())) != 1)
      return false;
    return library_.finish(context_, nothing, &count) == 1;
  }

  const Library& library_;
  Context* const context_;
};

}  // namespace

std::vector<Cipher> ciphers() {
  if (library() == nullptr) return {};
  if (has_aes()) return {Cipher::aes_256_gcm, Cipher::chacha20_poly1305};
  return {Cipher::chacha20_poly1305, Cipher::aes_256_gcm};
}

std::string why_no_cipher() {
  if (library() != nullptr) return "";
  return std::string("libcrypto is missing: this process does not export it, and the system has no ") +
         kSystem + " (Debian's package libssl3)";
}

std::unique_ptr<Aead> open_aead(Cipher cipher, const Key& key, bool seals, std::string* error) {
  const Library* found = library();
  if (found == nullptr) {
    *error = why_no_cipher();
    return nullptr;
  }
  Context* context = found->context_new();
  const CipherType* type = cipher == Cipher::aes_256_gcm ? found->aes() : found->chacha();
  if (context == nullptr || type == nullptr ||
      found->init(context, type, nullptr, raw(key.data()), nullptr, seals ? 1 : 0) != 1) {
    if (context != nullptr) found->context_free(context);
    *error = "libcrypto refuses the cipher";
    return nullptr;
  }
  return std::make_unique<LibcryptoAead>(*found, context);
}

}  // namespace rdma_rpc::seal
