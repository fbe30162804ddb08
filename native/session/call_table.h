// The calls of one session, by call slot. There is room for all that may be open at once; it is
// made in pieces, each when one of its slots is first used, so that a session takes memory for the calls that
// it has had at once. Owned by an endpoint, on the context's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/prefetch.h"

namespace rdma_rpc::session {

template <class Call>
class CallTable {
 public:
  /// `generation`: where those of all slots begin.
  explicit CallTable(std::uint32_t slots, std::uint32_t generation = 0)
      : pieces_((slots + kPieceSlots - 1) / kPieceSlots), generation_(generation) {}

  Call& operator[](std::uint32_t slot) {
    const std::unique_ptr<Piece>& piece = pieces_[slot / kPieceSlots];
    return (piece != nullptr ? *piece : make(slot)).calls[slot % kPieceSlots];
  }
  /// This slot will be looked at (if there is one of that number, which may be anything): see
  /// Endpoint::expect_call().
  void expect(int step, std::uint32_t slot) const {
    if (step == 2) return fabric::prefetch(pieces_.data() + slot / kPieceSlots);
    if (slot / kPieceSlots >= pieces_.size()) return;
    if (const Piece* piece = pieces_[slot / kPieceSlots].get()) {
      fabric::prefetch(&piece->calls[slot % kPieceSlots], sizeof(Call));
    }
  }
  /// Of a slot that has been used.
  const Call& operator[](std::uint32_t slot) const {
    return pieces_[slot / kPieceSlots]->calls[slot % kPieceSlots];
  }
  /// Calls `f(slot, call)` for each slot that may have been used.
  template <class F>
  void for_each(F&& f) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i] == nullptr) continue;
      for (std::uint32_t j = 0; j < kPieceSlots; ++j) {
        f(static_cast<std::uint32_t>(i) * kPieceSlots + j, pieces_[i]->calls[j]);
      }
    }
  }

 private:
  static constexpr std::uint32_t kPieceSlots = 16;
  struct Piece {
    Call calls[kPieceSlots];
  };
  Piece& make(std::uint32_t slot) {
    std::unique_ptr<Piece>& piece = pieces_[slot / kPieceSlots];
    piece = std::make_unique<Piece>();
    for (Call& call : piece->calls) call.generation = generation_;
    return *piece;
  }

  std::vector<std::unique_ptr<Piece>> pieces_;
  const std::uint32_t generation_;
};

}  // namespace rdma_rpc::session
