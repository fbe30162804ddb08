// Describes a receive slot: the memory from which the bytes of a frame are read. JS identifies a receive slot
// by one number. The range of the number determines the kind of the slot. The ranges depend on the session,
// so only Receives (receives.h) creates slots and converts numbers from JS back to slots. This code runs on
// the context's thread.
#pragma once

#include <cstdint>

namespace rdma_rpc::session {

class ReceiveSlot {
 public:
  enum class Kind : std::uint8_t {
    receive,   ///< a receive, to which the peer's SEND was written
    copy,      ///< a copy of a receive to which the peer can still write
    overflow,  ///< a slot behind the receives: metadata of a request that waited for memory (kOverflowSlots)
    short_message,  ///< a copy of a short frame, in memory that all sessions share (ShortMessages)
  };

  static constexpr ReceiveSlot receive(std::uint32_t number) { return {Kind::receive, number}; }
  static constexpr ReceiveSlot copy(std::uint32_t number) { return {Kind::copy, number}; }
  static constexpr ReceiveSlot overflow(std::uint32_t number) { return {Kind::overflow, number}; }
  static constexpr ReceiveSlot short_message(std::uint32_t number) { return {Kind::short_message, number}; }

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_short() const { return kind_ == Kind::short_message; }
  /// Returns the number that JS uses for the slot.
  constexpr std::uint32_t number() const { return number_; }

 private:
  constexpr ReceiveSlot(Kind kind, std::uint32_t number) : kind_(kind), number_(number) {}
  Kind kind_;
  std::uint32_t number_;
};

}  // namespace rdma_rpc::session
