// Manages the receives of one session. The class has their memory, which belongs to the session or is shared
// with other sessions; the copies that are read where peers can still write to receives; and the overflow
// slots. The class knows which of these are free, posted or used by JS. It knows nothing of frames and
// credits. Link owns this object and uses it on the context's thread.
//
//   posted ──a frame comes──► came() ──readable()──► with JS or a request ──recycle()──► consumed ──post()──►
//   posted
//
// When frames are copied, readable() returns a copy and sets the receive aside. recycle() of the copy then
// frees one of the receives that were set aside. The freed receive may be another than the copied one,
// because the bytes of such receives are no longer needed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/free_list.h"
#include "fabric/prefetch.h"
#include "session/link/receive_slot.h"
#include "session/shared.h"

namespace rdma_rpc::session {

constexpr std::uint64_t wr_id_base(std::uint32_t session) { return std::uint64_t{session} << 32; }

class Receives {
 public:
  Receives(Shared& shared, std::uint32_t session, std::uint32_t depth);
  /// Must run after the queue pair has been destroyed.
  ~Receives();
  Receives(const Receives&) = delete;
  Receives& operator=(const Receives&) = delete;

  struct Wanted {
    bool may_share = false;       ///< the peer supports credit grants
    bool opens_in_place = false;  ///< sealed frames are decrypted in memory that no peer can see
  };
  /// Allocates memory. Returns "", or an error text when the device refuses it.
  std::string open(const Wanted& wanted);
  /// Fills in the options with which the queue pair is to be created.
  void describe(fabric::QpOptions& queues) const;

  // --- memory and slots
  std::uint32_t depth() const { return depth_; }
  /// Returns true when the receives are shared with other sessions.
  bool shares() const { return member_.has_value(); }
  /// Returns true when JS must use one set of windows for all sessions that share receives.
  bool windows_are_shared() const { return shares() && copies_ == nullptr; }
  /// Returns the memory of the window that contains slot number `number` (boundary::receive_window), for JS.
  /// The result is empty when the session has no such slot.
  std::span<std::byte> window(std::uint32_t number) const;
  /// Returns the slot for a number from JS.
  ReceiveSlot slot(std::uint32_t number) const {
    if (ShortMessages::has(number)) return ReceiveSlot::short_message(number);
    if (number >= first_overflow_slot_) return ReceiveSlot::overflow(number);
    return copies_ != nullptr ? ReceiveSlot::copy(number) : ReceiveSlot::receive(number);
  }
  /// The first function returns the memory that contains the bytes of a frame in `slot`, as JS has it. The
  /// second function returns the offset of the frame in this memory.
  std::byte* memory_of(ReceiveSlot slot) const {
    return slot.is_short() ? shared_.short_messages.data()
                           : readable_at() + std::size_t{boundary::window_start(slot.number())} * stride_;
  }
  std::uint32_t offset_of(ReceiveSlot slot) const {
    return slot.is_short() ? ShortMessages::offset_of(slot.number())
                           : (slot.number() - boundary::window_start(slot.number())) * stride_;
  }
  std::byte* at(ReceiveSlot slot) const { return memory_of(slot) + offset_of(slot); }

  // --- received frames
  /// Records that receive number `receive` has completed, or that `count` own receives have been flushed.
  void came(std::uint32_t receive, std::uint32_t count) {
    if (shares()) {
      shared_.shared_receives.came(*member_, session_, receive);
    } else {
      posted_ -= count;
    }
  }
  /// Returns the slot in which to read a received frame, or std::nullopt when no copy is free. The frame must
  /// have been counted against the peer's credits, which limit the number of copies.
  std::optional<ReceiveSlot> readable(std::uint32_t receive, const fabric::Wc& wc);
  /// Releases the slot. The receive of the slot is reposted with the next post().
  void recycle(ReceiveSlot slot);
  /// Returns an overflow slot, or std::nullopt when all are in use.
  std::optional<ReceiveSlot> take_overflow() {
    const std::optional<std::uint32_t> free = free_overflow_slots_.take();
    if (!free) return std::nullopt;
    return ReceiveSlot::overflow(*free);
  }
  bool has_overflow() const { return !free_overflow_slots_.empty(); }

  // --- posting
  bool has_consumed() const { return !consumed_.empty(); }
  /// Returns true while the queue pair has own receives whose flush is pending.
  bool has_posted() const { return posted_ != 0; }
  /// Reposts recycled receives. Returns how many more frames the peer may send. Returns std::nullopt, and the
  /// reason, when the device accepts fewer receives than it must.
  std::optional<std::uint32_t> post(fabric::QueuePair& qp, std::string* why);
  /// Returns the number of receives that JS or waiting requests use. Such receives are not posted, and will
  /// not be posted with the next post().
  std::uint32_t kept() const;

  // --- prefetching, see Session::expect()
  void expect_lists(const fabric::Wc& wc) const {
    if (copies_ == nullptr) return;
    fabric::prefetch(consumed_.data() + consumed_.size());
    if (wc.apart != nullptr) return;
    for (const fabric::FreeList<>* list : {&free_copies_, &copied_}) fabric::prefetch(list->end());
  }
  void expect_copy(const fabric::Wc& wc) const {
    const std::uint32_t* slot = free_copies_.peek();
    if (copies_ == nullptr || slot == nullptr || wc.bytes == 0 || wc.apart != nullptr) return;
    fabric::prefetch(copies_.get() + std::size_t{*slot} * stride_, std::min(wc.bytes, 256u));
  }

 private:
  std::byte* received_at() const { return shares() ? shared_.shared_receives.data() : memory_.data(); }
  /// Returns the received bytes as they are read: a copy where peers can still write to receives.
  std::byte* readable_at() const { return copies_ != nullptr ? copies_.get() : received_at(); }
  std::size_t readable_bytes() const {
    if (copies_ != nullptr) return own_bytes();
    return shares() ? shared_.shared_receives.size() : memory_.size();
  }
  std::size_t own_bytes() const { return std::size_t{depth_ + kOverflowSlots} * stride_; }

  Shared& shared_;
  const std::uint32_t session_, depth_, stride_;
  ReceivePool::Slab memory_;
  std::unique_ptr<std::byte[]> copies_;  ///< memory for copies, of the same size as the receives, or null
  bool opens_in_place_ = false;
  std::optional<SharedReceives::Member> member_;  ///< empty when the session has receives of its own
  std::uint32_t posted_ = 0;                      ///< number of posted own receives
  /// Slots with this number and higher ones are no receives.
  std::uint32_t first_overflow_slot_ = 0;
  std::vector<std::uint32_t> consumed_;  ///< receives to be reposted
  /// The free slots of copies_, and the receives whose copies are in use. The slot that was freed last is
  /// used first. Receives cycle through all of their memory, whereas copies stay in the cache.
  fabric::FreeList<> free_copies_, copied_;
  std::uint32_t copies_made_ = 0;  ///< number of copies made so far, at most depth_
  fabric::FreeList<> free_overflow_slots_;
};

}  // namespace rdma_rpc::session
