// See request_reader.h.
#include "checked/request_reader.h"

#include <algorithm>

#include "checked/records.h"

namespace rdma_rpc::checked {
namespace {

using fabric::Feature;
using fabric::Opcode;
using fabric::QpType;

constexpr std::uint32_t kAtomicBytes = 8;

std::string request(std::uint32_t index) { return "request " + std::to_string(index) + " of the batch: "; }

Refusal out_of_range(std::uint32_t index, const std::string& text) {
  return refuse(Cause::range, request(index) + text);
}

bool is_atomic(Opcode opcode) {
  return opcode == Opcode::atomic_cmp_and_swp || opcode == Opcode::atomic_fetch_and_add;
}
bool is_write(Opcode opcode) { return opcode == Opcode::rdma_write || opcode == Opcode::rdma_write_with_imm; }
bool is_send(Opcode opcode) { return opcode == Opcode::send || opcode == Opcode::send_with_imm; }
/// Returns true for operations that write to the memory of their entries.
bool is_answered(Opcode opcode) { return opcode == Opcode::rdma_read || is_atomic(opcode); }

/// Returns true for operations that concern windows; they send nothing.
bool is_local(Opcode opcode) { return opcode == Opcode::bind_mw || opcode == Opcode::local_inv; }

/// Returns true when only some devices support the operation; `feature` is then the feature that it needs.
bool needs(Opcode opcode, Feature* feature) {
  if (is_local(opcode) || opcode == Opcode::send_with_inv) {
    *feature = Feature::windows;
    return true;
  }
  if (opcode == Opcode::send_with_imm) *feature = Feature::send_with_imm;
  if (opcode == Opcode::rdma_write_with_imm) *feature = Feature::write_with_imm;
  if (is_atomic(opcode)) *feature = Feature::atomics;
  return opcode == Opcode::send_with_imm || opcode == Opcode::rdma_write_with_imm || is_atomic(opcode);
}

bool word64(const double* high, const double* low, std::uint64_t* value) {
  std::uint32_t upper = 0, lower = 0;
  if (!whole32(*high, &upper) || !whole32(*low, &lower)) return false;
  *value = std::uint64_t{upper} << 32 | lower;
  return true;
}

}  // namespace

Refusal RequestReader::read_sends(std::span<const double> rows, std::size_t count, std::size_t sges,
                                  double stamp) {
  begin(count);
  const std::size_t columns = send_record::header + sges * sge_record::words;
  for (std::uint32_t i = 0; i < count; ++i)
    if (Refusal why = send(rows.subspan(i * columns, columns), i); !why.none()) return why;
  end(stamp);
  return {};
}

Refusal RequestReader::read_receives(std::span<const double> rows, std::size_t count, double stamp) {
  begin(count);
  for (std::uint32_t i = 0; i < count; ++i)
    if (Refusal why = recv(rows.subspan(i * recv_record::words, recv_record::words), i); !why.none())
      return why;
  end(stamp);
  return {};
}

void RequestReader::begin(std::size_t count) {
  stamp_ = 0;
  requests_.clear();
  sends_.clear();
  receives_.clear();
  sges_.clear();
  kept_.clear();
  binds_.clear();
  ends_.clear();
  sends_.reserve(count);
  sges_.reserve(count * sge_max_);  // must not reallocate later, because the requests point into it
}

/// A bind gets a new key each time it is posted, so a batch with a bind is read each time.
void RequestReader::end(double stamp) {
  if (!binds_.empty()) return;
  stamp_ = stamp;
  removals_ = resources_.removals();
}

Refusal RequestReader::entry(const double* columns, std::uint32_t access, std::uint32_t index,
                             fabric::Sge& sge) {
  if (!whole(columns[sge_record::addr], kExactMax, &sge.addr) ||
      !whole32(columns[sge_record::length], &sge.length) || !whole32(columns[sge_record::lkey], &sge.lkey))
    return out_of_range(index, "address, length or lkey is no whole number in range");
  const Region* region = resources_.regions->find(sge.lkey);
  const auto key = [&sge] { return std::to_string(sge.lkey); };
  if (region == nullptr)
    return refuse(Cause::closed, request(index) + "no open memory region has the lkey " + key());
  if (!region->contains(sge.addr, sge.length)) {
    return out_of_range(index, std::to_string(sge.length) + " bytes at address " + std::to_string(sge.addr) +
                                   " are not all in the memory region with lkey " + key());
  }
  if (!region->allows(access)) {
    return out_of_range(index, "the memory region with lkey " + key() +
                                   " was registered without Access.localWrite, which memory to be written "
                                   "needs");
  }
  kept_.push_back(region);
  return {};
}

Refusal RequestReader::why_wrong(const fabric::SendWr& wr, std::uint64_t bytes, std::uint32_t index) const {
  const auto too_long = [&](std::uint64_t most) {
    return out_of_range(index, std::to_string(bytes) + " bytes are more than this message may have (" +
                                   std::to_string(most) + ")");
  };
  if (is_local(wr.opcode) && (!wr.sges.empty() || wr.inline_data))
    return out_of_range(index, "nothing is sent by it, so it has no entries and is not inline");
  if (wr.inline_data && is_answered(wr.opcode))
    return out_of_range(index, "only SENDs and WRITEs can be inline");
  if (wr.inline_data && bytes > capabilities_.max_inline)
    return out_of_range(index, std::to_string(bytes) + " bytes are more than maxInline (" +
                                   std::to_string(capabilities_.max_inline) + ")");
  if (type_ == QpType::ud) {
    return bytes > capabilities_.max_datagram_bytes ? too_long(capabilities_.max_datagram_bytes) : Refusal();
  }
  if (is_atomic(wr.opcode) && (bytes != kAtomicBytes || wr.sges.size() != 1))
    return out_of_range(index, "an atomic has one entry of 8 bytes, for the value before");
  if (is_atomic(wr.opcode) && wr.remote_addr % kAtomicBytes != 0)
    return out_of_range(index, "the remote address of an atomic is a multiple of 8");
  if (bytes > capabilities_.max_msg_bytes) return too_long(capabilities_.max_msg_bytes);
  if (is_write(wr.opcode) && bytes > capabilities_.max_write_bytes)
    return too_long(capabilities_.max_write_bytes);
  return {};
}

Refusal RequestReader::entries(std::span<const double> row, std::uint32_t index, fabric::SendWr& wr) {
  std::uint32_t count = 0;
  if (!whole32(row[send_record::sges], &count)) return out_of_range(index, "no number of entries");
  const bool answered = is_answered(wr.opcode);
  const std::size_t room = (row.size() - send_record::header) / sge_record::words;
  const std::uint32_t device = answered ? capabilities_.max_sge_read : capabilities_.max_sge;
  if (const auto most = std::min<std::size_t>({room, sge_max_, device}); count > most) {
    return out_of_range(index, std::to_string(count) +
                                   " scatter/gather entries; the batch, the queue pair (sgeMax) and the "
                                   "device allow " +
                                   std::to_string(most));
  }
  const std::size_t first = sges_.size();
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    fabric::Sge sge;
    const double* columns = &row[send_record::header + i * sge_record::words];
    Refusal why = entry(columns, answered ? fabric::access_local_write : 0u, index, sge);
    if (!why.none()) return why;
    bytes += sge.length;
    sges_.push_back(sge);
  }
  wr.sges = {sges_.data() + first, count};
  return why_wrong(wr, bytes, index);
}

/// Reads a window and the part of a region to which it is bound.
Refusal RequestReader::bind(std::span<const double> row, std::uint32_t index, fabric::SendWr& wr) {
  std::uint32_t number = 0, access = 0;
  fabric::SendWr::Bind made;
  if (!whole32(row[send_record::ah], &number) || !whole32(row[send_record::swap_low], &access) ||
      !word64(&row[send_record::compare_high], &row[send_record::compare_low], &made.length))
    return out_of_range(index, "window, rights or length is no whole number in range");
  Window* window = resources_.windows->find(number);
  if (window == nullptr)
    return refuse(Cause::closed, request(index) + "the memory window is closed, or of another device");
  Region* region = resources_.regions->find(wr.rkey);
  if (region == nullptr) {
    return refuse(Cause::closed,
                  request(index) + "no open memory region has the lkey " + std::to_string(wr.rkey));
  }
  if ((access & ~fabric::kRemoteAccess) != 0)
    return out_of_range(index, "a window has rights for peers only: remoteRead, remoteWrite, remoteAtomic");
  const bool writes = (access & ~static_cast<std::uint32_t>(fabric::access_remote_read)) != 0;
  if (!region->allows(fabric::access_mw_bind | (writes ? fabric::access_local_write : 0u)))
    return out_of_range(index, "the memory region was registered without Access.mwBind" +
                                   std::string(writes ? ", or without Access.localWrite" : ""));
  if (made.length == 0 || !region->contains(wr.remote_addr, made.length))
    return out_of_range(index, "the window is empty, or not all in its memory region");
  made.window = &window->on_device();
  made.region = &region->on_device();
  made.addr = wr.remote_addr;
  made.access = access;
  wr.bind = made;
  wr.remote_addr = 0;
  wr.rkey = 0;
  kept_.push_back(window);
  kept_.push_back(region);
  binds_.push_back({index, window, region});
  return {};
}

/// Reads the columns that only some operations use.
Refusal RequestReader::rest(std::span<const double> row, std::uint32_t index, fabric::SendWr& wr) {
  if (is_atomic(wr.opcode)) {
    fabric::SendWr::Atomic atomic{};
    if (!word64(&row[send_record::compare_high], &row[send_record::compare_low], &atomic.compare_add) ||
        !word64(&row[send_record::swap_high], &row[send_record::swap_low], &atomic.swap))
      return out_of_range(index, "an operand is no integer of 64 bits");
    wr.atomic = atomic;
    return {};
  }
  if (wr.opcode == Opcode::bind_mw) return bind(row, index, wr);
  if (wr.opcode == Opcode::local_inv || wr.opcode == Opcode::send_with_inv) {
    if (!whole32(row[send_record::invalidate_rkey], &wr.invalidate_rkey) || wr.invalidate_rkey == 0)
      return out_of_range(index, "the key to invalidate is no key of a window");
    return {};
  }
  if (type_ != QpType::ud) return {};
  std::uint32_t handle = 0;
  fabric::SendWr::Datagram datagram{};
  if (!whole32(row[send_record::ah], &handle) ||
      !whole32(row[send_record::remote_qpn], &datagram.remote_qpn) ||
      !whole32(row[send_record::remote_qkey], &datagram.remote_qkey))
    return out_of_range(index, "address handle, remoteQpn or remoteQkey is no whole number in range");
  const AddressHandle* found = resources_.handles->find(handle);
  if (found == nullptr) {
    return refuse(Cause::closed,
                  request(index) + "a datagram needs an open address handle: begin it with to()");
  }
  datagram.ah = &found->on_device();
  wr.ud = datagram;
  kept_.push_back(found);
  return {};
}

Refusal RequestReader::send(std::span<const double> row, std::uint32_t index) {
  std::uint32_t opcode = 0, flags = 0;
  std::uint64_t wr_id = 0;
  fabric::SendWr& wr = sends_.emplace_back();
  if (!whole(row[send_record::wr_id], kExactMax, &wr_id) || !whole32(row[send_record::flags], &flags))
    return out_of_range(index, "wrId or flags is no whole number in range");
  if (!whole32(row[send_record::opcode], &opcode) || !opcode_of(opcode, &wr.opcode))
    return out_of_range(index, "unknown operation");
  if ((flags & ~(send_fence | send_signaled | send_solicited | send_inline)) != 0)
    return out_of_range(index, "unknown flags");
  if (Feature feature; needs(wr.opcode, &feature) && !capabilities_.has(feature))
    return refuse(Cause::unsupported, request(index) + capabilities_.why_not(feature));
  const bool fits = type_ == QpType::rc || is_send(wr.opcode) || (type_ == QpType::uc && is_write(wr.opcode));
  if (!fits) {
    return refuse(Cause::unsupported, request(index) + "a queue pair of type " + fabric::to_string(type_) +
                                          " has no such operation");
  }
  if (!whole(row[send_record::remote_addr], kExactMax, &wr.remote_addr) ||
      !whole32(row[send_record::rkey], &wr.rkey) || !whole32(row[send_record::imm], &wr.imm))
    return out_of_range(index, "remoteAddr, rkey or imm is no whole number in range");
  wr.signaled = (flags & send_signaled) != 0;
  wr.solicited = (flags & send_solicited) != 0;
  wr.inline_data = (flags & send_inline) != 0;
  wr.fence = (flags & send_fence) != 0;
  if (Refusal why = entries(row, index, wr); !why.none()) return why;
  if (Refusal why = rest(row, index, wr); !why.none()) return why;
  requests_.push_back({row[send_record::wr_id], wr.opcode});
  ends_.push_back(kept_.size());
  return {};
}

Refusal RequestReader::recv(std::span<const double> row, std::uint32_t index) {
  std::uint64_t wr_id = 0;
  fabric::RecvWr wr;
  if (!whole(row[recv_record::wr_id], kExactMax, &wr_id))
    return out_of_range(index, "wrId is no whole number in range");
  if (Refusal why = entry(&row[recv_record::addr], fabric::access_local_write, index, wr.sge); !why.none())
    return why;
  receives_.push_back(wr);
  requests_.push_back({row[recv_record::wr_id], Opcode::recv});
  ends_.push_back(kept_.size());
  return {};
}

}  // namespace rdma_rpc::checked
