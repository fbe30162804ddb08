// See queue_pair.h.
#include "checked/queue_pair.h"

#include <algorithm>

namespace rdma_rpc::checked {
namespace {

using fabric::Opcode;
using fabric::QpState;

std::string request(std::uint32_t index) { return "request " + std::to_string(index) + " of the batch: "; }

Refusal no_room(const char* queue, const char* option, const Outstanding& requests, std::size_t count) {
  return refuse(Cause::full, std::string("the ") + queue + " queue has room for " +
                                 std::to_string(requests.room()) + " of these " + std::to_string(count) +
                                 " requests (" + option + " is " + std::to_string(requests.depth()) +
                                 "): poll the completion queue first");
}

std::uint64_t source_bits(std::uint32_t source) { return std::uint64_t{source} << 32; }

}  // namespace

QueuePair::QueuePair(std::shared_ptr<CompletionQueue> cq, std::shared_ptr<Regions> regions,
                     const fabric::Capabilities& capabilities, const QueuePairOptions& options,
                     std::unique_ptr<fabric::QueuePair> queue_pair)
    : cq_(std::move(cq)),
      regions_(std::move(regions)),
      capabilities_(capabilities),
      sge_max_(options.sge_max),
      sends_(options.fabric.send_wr_max, options.sge_max),
      receives_(options.fabric.recv_wr_max, 1),
      send_source_(cq_->add_source(sends_)),
      recv_source_(cq_->add_source(receives_)),
      queue_pair_(std::move(queue_pair)) {}

QueuePair::~QueuePair() {
  queue_pair_.reset();  // its requests use the regions that the members before it keep
  cq_->remove_source(send_source_);
  cq_->remove_source(recv_source_);
}

std::shared_ptr<Region> QueuePair::region_of(const double* entry, std::uint32_t access, std::uint32_t index,
                                             fabric::Sge& sge, Refusal& why) {
  std::uint64_t addr = 0;
  if (!whole(entry[sge_record::addr], kExactMax, &addr) || !whole32(entry[sge_record::length], &sge.length) ||
      !whole32(entry[sge_record::lkey], &sge.lkey)) {
    why = refuse(Cause::range, request(index) + "address, length or lkey is no whole number in range");
    return nullptr;
  }
  sge.addr = addr;
  std::shared_ptr<Region> region = regions_->find(sge.lkey);
  if (region == nullptr) {
    why = refuse(Cause::closed,
                 request(index) + "no open memory region has the lkey " + std::to_string(sge.lkey));
  } else if (!region->contains(sge.addr, sge.length)) {
    why = refuse(Cause::range, request(index) + std::to_string(sge.length) + " bytes at address " +
                                   std::to_string(sge.addr) + " are not all in the memory region with lkey " +
                                   std::to_string(sge.lkey));
  } else if (!region->allows(access)) {
    why = refuse(Cause::range,
                 request(index) + "the memory region with lkey " + std::to_string(sge.lkey) +
                     " was registered without Access.localWrite, which memory that is written needs");
  } else {
    return region;
  }
  return nullptr;
}

Refusal QueuePair::read_sges(std::span<const double> row, std::uint32_t index, fabric::SendWr& wr) {
  std::uint32_t count = 0;
  if (!whole32(row[send_record::sges], &count))
    return refuse(Cause::range, request(index) + "no number of entries");
  const bool reads = wr.opcode == Opcode::rdma_read;
  const std::size_t room = (row.size() - send_record::header) / sge_record::words;
  const std::uint32_t device = reads ? capabilities_.max_sge_read : capabilities_.max_sge;
  if (const auto max = std::min<std::size_t>({room, sge_max_, device}); count > max) {
    return refuse(Cause::range,
                  request(index) + std::to_string(count) +
                      " scatter/gather entries, but the batch, the queue pair (sgeMax) and the device "
                      "allow " +
                      std::to_string(max));
  }
  const std::size_t first = sge_batch_.size();
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    Refusal why;
    fabric::Sge sge;
    auto region = region_of(&row[send_record::header + i * sge_record::words],
                            reads ? fabric::access_local_write : 0u, index, sge, why);
    if (region == nullptr) return why;
    bytes += sge.length;
    sge_batch_.push_back(sge);
    region_batch_.push_back(std::move(region));
  }
  if (wr.inline_data && (reads || bytes > capabilities_.max_inline)) {
    return refuse(Cause::range,
                  request(index) + (reads ? std::string("a READ cannot be inline")
                                          : std::to_string(bytes) + " bytes are more than maxInline (" +
                                                std::to_string(capabilities_.max_inline) + ")"));
  }
  const std::uint64_t longest = wr.opcode == Opcode::rdma_write || wr.opcode == Opcode::rdma_write_with_imm
                                    ? std::min(capabilities_.max_msg_bytes, capabilities_.max_write_bytes)
                                    : capabilities_.max_msg_bytes;
  if (bytes > longest) {
    return refuse(Cause::range, request(index) + std::to_string(bytes) +
                                    " bytes are more than one message has (" + std::to_string(longest) + ")");
  }
  // sge_batch_ has its room, so that the span stays valid.
  wr.sges = {sge_batch_.data() + first, count};
  return {};
}

Refusal QueuePair::read_send(std::span<const double> row, std::uint32_t index) {
  std::uint32_t opcode = 0, flags = 0;
  std::uint64_t wr_id = 0;
  fabric::SendWr wr;
  if (!whole(row[send_record::wr_id], kExactMax, &wr_id) || !whole32(row[send_record::flags], &flags))
    return refuse(Cause::range, request(index) + "wrId or flags is no whole number in range");
  if (!whole32(row[send_record::opcode], &opcode) || !opcode_of(opcode, &wr.opcode))
    return refuse(Cause::range, request(index) + "unknown opcode");
  if ((flags & ~(send_fence | send_signaled | send_inline)) != 0)
    return refuse(Cause::range, request(index) + "unknown flags");
  if (wr.opcode == Opcode::rdma_write_with_imm && !capabilities_.immediate)
    return refuse(Cause::unsupported, request(index) + "the device has no immediate data");
  if (!whole(row[send_record::remote_addr], kExactMax, &wr.remote_addr) ||
      !whole32(row[send_record::rkey], &wr.rkey) || !whole32(row[send_record::imm], &wr.imm) ||
      !whole32(row[send_record::invalidate_rkey], &wr.invalidate_rkey))
    return refuse(Cause::range, request(index) + "remoteAddr, rkey or imm is no whole number in range");
  wr.wr_id = source_bits(send_source_) | sends_.next(index);
  wr.signaled = (flags & send_signaled) != 0;
  wr.inline_data = (flags & send_inline) != 0;
  wr.fence = (flags & send_fence) != 0;
  if (Refusal why = read_sges(row, index, wr); !why.none()) return why;
  batch_.push_back(wr);
  wr_ids_.push_back(row[send_record::wr_id]);
  return {};
}

Refusal QueuePair::post_send(std::span<const double> rows, std::size_t count, std::size_t sges) {
  const QpState state = queue_pair_->state();
  if (state != QpState::rts && state != QpState::err) {
    return refuse(Cause::state, std::string("the queue pair is in ") + fabric::to_string(state) +
                                    ", and sends are posted in RTS: connect it first");
  }
  if (count > sends_.room()) return no_room("send", "sendWrMax", sends_, count);
  batch_.clear();
  sge_batch_.clear();
  region_batch_.clear();
  wr_ids_.clear();
  sge_batch_.reserve(count * sge_max_);
  const std::size_t columns = send_record::header + sges * sge_record::words;
  for (std::size_t i = 0; i < count; ++i) {
    Refusal why = read_send(rows.subspan(i * columns, columns), static_cast<std::uint32_t>(i));
    if (!why.none()) {
      region_batch_.clear();
      return why;
    }
  }
  const std::size_t taken = queue_pair_->post_send(batch_);
  std::span<const std::shared_ptr<Region>> regions = region_batch_;
  for (std::size_t i = 0; i < taken; ++i) {
    const std::size_t own = batch_[i].sges.size();
    sends_.add({wr_ids_[i], batch_[i].opcode}, regions.first(own));
    regions = regions.subspan(own);
  }
  region_batch_.clear();
  if (taken == count) return {};
  return refuse(Cause::refused, "the device took " + std::to_string(taken) + " of " + std::to_string(count) +
                                    " requests; the others were not posted");
}

Refusal QueuePair::read_recv(std::span<const double> row, std::uint32_t index) {
  std::uint64_t wr_id = 0;
  Refusal why;
  fabric::RecvWr wr;
  if (!whole(row[recv_record::wr_id], kExactMax, &wr_id))
    return refuse(Cause::range, request(index) + "wrId is no whole number in range");
  auto region = region_of(&row[recv_record::addr], fabric::access_local_write, index, wr.sge, why);
  if (region == nullptr) return why;
  wr.wr_id = source_bits(recv_source_) | receives_.next(index);
  recv_batch_.push_back(wr);
  region_batch_.push_back(std::move(region));
  return {};
}

Refusal QueuePair::post_recv(std::span<const double> rows, std::size_t count) {
  if (count > receives_.room()) return no_room("receive", "recvWrMax", receives_, count);
  recv_batch_.clear();
  region_batch_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    Refusal why =
        read_recv(rows.subspan(i * recv_record::words, recv_record::words), static_cast<std::uint32_t>(i));
    if (!why.none()) {
      region_batch_.clear();
      return why;
    }
  }
  const std::size_t taken = queue_pair_->post_recv(recv_batch_);
  for (std::size_t i = 0; i < taken; ++i) {
    receives_.add({rows[i * recv_record::words], Opcode::recv}, std::span(region_batch_).subspan(i, 1));
  }
  region_batch_.clear();
  if (taken == count) return {};
  return refuse(Cause::refused, "the device took " + std::to_string(taken) + " of " + std::to_string(count) +
                                    " receives; the others were not posted");
}

}  // namespace rdma_rpc::checked
