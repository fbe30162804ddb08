// The tests of hostile shm peers share this code: a queue pair's segment that is written from outside, and
// seeded numbers.
#pragma once

#include <random>

#include "fabric/shm/device.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory/segment.h"
#include "fabric/shm/peers.h"

namespace rdma_rpc::fabric::test {

/// A queue pair's segment, which the test writes from outside.
class RawSegment {
 public:
  explicit RawSegment(const QueuePair& qp) {
    shm::AddressBlob blob;
    const auto bytes = qp.local_address();
    std::memcpy(&blob, bytes.data(), sizeof blob);
    std::string error;
    slots_ = blob.receive_slots;
    map_ = shm::map_peer_memfd(shm::this_process(), blob.qp_fd, shm::qp_segment_bytes(slots_),
                               shm::PeerMay::write, &error);
    EXPECT_TRUE(map_) << error;
  }
  shm::QpSegment& header() const { return *reinterpret_cast<shm::QpSegment*>(map_.data()); }
  shm::PostedReceive& receive(std::uint32_t index) const {
    return reinterpret_cast<shm::PostedReceive*>(map_.data() + shm::receives_offset())[index % slots_];
  }
  shm::Cell& cell(std::uint32_t index) const {
    auto* cells = reinterpret_cast<shm::Cell*>(map_.data() + shm::cells_offset(slots_));
    return cells[index % shm::cells_for(slots_)];
  }
  std::size_t words() const { return map_.bytes() / sizeof(std::uint64_t); }
  shm::LongWord& word(std::size_t index) const {
    return reinterpret_cast<shm::LongWord*>(map_.data())[index];
  }

 private:
  std::uint32_t slots_ = 0;
  shm::Mapping map_;
};

class Chance {
 public:
  explicit Chance(std::uint32_t seed) : engine_(seed) {}
  std::uint64_t any() { return engine_(); }
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(engine_() % limit); }
  bool one_in(std::uint32_t count) { return below(count) == 0; }
  /// Returns numbers, mostly at the limits of checks.
  std::uint64_t figure() {
    constexpr std::uint64_t kEdges[] = {0,
                                        1,
                                        2,
                                        3,
                                        55,
                                        56,
                                        shm::kInlineMax,
                                        shm::kInlineMax + 1,
                                        4095,
                                        4096,
                                        4097,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x100000000,
                                        ~std::uint64_t{0},
                                        ~std::uint64_t{4095}};
    return one_in(3) ? any() : kEdges[below(std::size(kEdges))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace rdma_rpc::fabric::test
