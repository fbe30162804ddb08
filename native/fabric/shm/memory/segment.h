// Maps shared memory that has no name: memfds of our own, and memfds and pipes of a peer. Memfds and pipes of
// a peer are opened through /proc/<pid>/fd, or received over the control connection. This code runs on the
// device's thread when devices, queue pairs and memories are created and connected, and never on the hot
// path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "fabric/shm/connect/process.h"
#include "fabric/unique_fd.h"

namespace rdma_rpc::fabric::shm {

class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }
  /// Moves the mapping over another mapping of this process. The owner of that mapping then owns the moved
  /// pages. Returns false when the system refuses.
  bool move_over(std::byte* address);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A memfd of this process, mapped, zeroed and of fixed size. (A peer that could shrink it could kill this
/// process by SIGBUS.)
struct Segment {
  UniqueFd fd;
  Mapping map;
};
enum class PeerMay { read, write };
/// Returns an empty map when the system refuses; `error` says why.
Segment create_segment(const char* name, std::size_t bytes, PeerMay peer, std::string* error);

/// Maps the peer's memfd with the number `fd`. Accepts only a memfd of exactly `bytes` bytes that is sealed
/// against resizing.
Mapping map_peer_memfd(const ProcessIdentity& peer, std::uint32_t fd, std::size_t bytes, PeerMay access,
                       std::string* error);

/// Maps a memfd that the peer has sent, with the same checks.
Mapping map_sent_memfd(const UniqueFd& file, std::size_t bytes, PeerMay access, std::string* error);

/// Opens the peer's pipe for writing. The function also opens a read end, so that writing to a dead peer's
/// pipe raises no SIGPIPE.
UniqueFd open_peer_pipe(const ProcessIdentity& peer, std::uint32_t fd, std::string* error);

}  // namespace rdma_rpc::fabric::shm
