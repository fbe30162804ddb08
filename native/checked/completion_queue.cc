// See completion_queue.h.
#include "checked/completion_queue.h"

#include <algorithm>

namespace rdma_rpc::checked {

namespace column = completion_record;

std::uint32_t CompletionQueue::add_source(Source& requests) {
  sources_.emplace(++last_source_, &requests);
  return last_source_;
}

void CompletionQueue::remove_source(std::uint32_t source) {
  sources_.erase(source);
  if (known_source_ == source) known_ = nullptr;
  forget(source);
}

void CompletionQueue::forget(std::uint32_t source) {
  std::erase_if(kept_, [source](const Row& row) { return row.source == source; });
}

Source* CompletionQueue::requests_of(std::uint32_t source) {
  if (known_ != nullptr && known_source_ == source) return known_;
  const auto found = sources_.find(source);
  if (found == sources_.end()) return nullptr;
  known_source_ = source;
  known_ = found->second;
  return known_;
}

/// Returns false for a completion that belongs to no request of JS.
bool CompletionQueue::translate(const fabric::Wc& wc, double* out) {
  Source* requests = requests_of(static_cast<std::uint32_t>(wc.wr_id >> 32));
  if (requests == nullptr) return false;
  const Request request = requests->complete(static_cast<std::uint32_t>(wc.wr_id));
  const bool done = wc.status == fabric::WcStatus::success;
  const bool invalidated = done && wc.invalidated_rkey != 0;
  out[column::wr_id] = request.wr_id;
  out[column::status] = status_number(wc.status);
  out[column::opcode] = completion_number(done ? wc.opcode : request.opcode);
  out[column::flags] = (done && wc.has_grh ? completion_grh : 0u) |
                       (done && wc.has_imm ? completion_with_imm : 0u) |
                       (invalidated ? completion_with_inv : 0u);
  out[column::qp_num] = wc.qp_num;
  out[column::bytes] = done ? wc.bytes : 0;
  out[column::imm] = done ? wc.imm : 0;
  out[column::invalidated_rkey] = invalidated ? wc.invalidated_rkey : 0;
  out[column::src_qp] = done ? wc.src_qp : 0;
  return true;
}

std::size_t CompletionQueue::take_kept(std::span<double> out) {
  const std::size_t count = std::min(kept_.size(), out.size() / column::words);
  for (std::size_t i = 0; i < count; ++i)
    std::copy(kept_[i].words.begin(), kept_[i].words.end(), &out[i * column::words]);
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

std::size_t CompletionQueue::poll(std::span<double> out) {
  const std::size_t room = out.size() / column::words;
  std::size_t count = kept_.empty() ? 0 : take_kept(out);
  while (count < room) {
    const std::size_t asked = std::min(kBatch, room - count);
    const std::size_t got = queue_->poll(std::span(batch_).first(asked));
    for (std::size_t i = 0; i < got; ++i) {
      if (translate(batch_[i], &out[count * column::words])) ++count;
    }
    if (got < asked) break;
  }
  return count;
}

std::size_t CompletionQueue::keep_batch() {
  const std::size_t got = queue_->poll(batch_);
  for (std::size_t i = 0; i < got; ++i) {
    Row row{static_cast<std::uint32_t>(batch_[i].wr_id >> 32), {}};
    if (translate(batch_[i], row.words.data())) kept_.push_back(row);
  }
  return got;
}

bool CompletionQueue::drive() {
  if (kept_.size() > kKeptMax - kBatch) return false;
  keep_batch();
  return true;
}

void CompletionQueue::keep_arrived() {
  while (keep_batch() == kBatch) continue;
}

}  // namespace rdma_rpc::checked
