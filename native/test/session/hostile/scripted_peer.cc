// See scripted_peer.h.
#include "session/hostile/scripted_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace rdma_rpc::session::test {

namespace {
constexpr std::uint64_t kReceive = std::uint64_t{1} << 32;
constexpr std::uint64_t kQuiet = std::uint64_t{1} << 33;  // marks binds, whose outcome is not checked
}  // namespace

void FrameBytes::append(const void* part, std::size_t count) {
  const std::size_t at = bytes.size();
  bytes.resize(at + count);
  std::memcpy(bytes.data() + at, part, count);
}

ScriptedPeer::ScriptedPeer(std::shared_ptr<fabric::Device> device, bool active, std::uint32_t inflight_max,
                           std::uint32_t slot_bytes, std::size_t receives_posted)
    : device_(std::move(device)),
      cq_(device_->create_cq(4096)),
      stride_(SendSlots::stride_for(slot_bytes)),
      receives_(static_cast<std::uint32_t>(
          std::min<std::size_t>(inflight_max + kControlReceives, receives_posted))) {
  std::string error;
  memory_ = device_->alloc_memory(kMemoryBytes, "scripted");
  region_ = device_->reg_mr(
      memory_->data(), kMemoryBytes,
      fabric::access_local_write |
          (device_->capabilities().windows ? fabric::access_mw_bind
                                           : fabric::access_remote_read | fabric::access_remote_write),
      &error);
  slab_ = device_->alloc_memory(std::size_t{receives_ + 2} * stride_, "scripted");
  slab_region_ = device_->reg_mr(slab_->data(), slab_->size(), fabric::access_local_write, &error);
  const fabric::QpOptions queues{.send_wr_max = std::min(4096u, device_->capabilities().max_qp_wr),
                                 .recv_wr_max = inflight_max + kControlReceives,
                                 .active = active};
  qp_ = device_->create_qp(*cq_, queues, &error);
  for (std::uint32_t i = 0; i < receives_; ++i) post_receive(i);
}

void ScriptedPeer::post_receive(std::uint32_t index) {
  const fabric::RecvWr wr{kReceive | index,
                          {reinterpret_cast<std::uint64_t>(slab_->data()) + std::size_t{index} * stride_,
                           stride_, slab_region_->lkey()}};
  qp_->post_recv({&wr, 1});
}

void ScriptedPeer::connect(Session& session) {
  EXPECT_EQ(session.connect(qp_->local_address()), "");
  EXPECT_EQ(qp_->connect(session.local_address()), "");
}

void ScriptedPeer::poll() {
  std::array<fabric::Wc, 32> wcs;
  for (std::size_t count; (count = cq_->poll(wcs)) != 0;) {
    for (std::size_t i = 0; i < count; ++i) {
      const fabric::Wc& wc = wcs[i];
      if ((wc.wr_id & kQuiet) != 0) continue;
      if ((wc.wr_id & kReceive) == 0) {
        outcomes_.push_back(wc.status);
        continue;
      }
      if (wc.status != fabric::WcStatus::success) continue;
      const auto index = static_cast<std::uint32_t>(wc.wr_id);
      const std::byte* from = slab_->data() + std::size_t{index} * stride_;
      Received received{{from, from + wc.bytes}, {}, nullptr, wc.invalidated_rkey};
      received.error = wire::parse(received.bytes.data(), wc.bytes, received.frame);
      inbox_.push_back(std::move(received));
      post_receive(index);
    }
  }
}

std::optional<ScriptedPeer::Received> ScriptedPeer::receive() {
  poll();
  if (inbox_.empty()) return std::nullopt;
  Received received = std::move(inbox_.front());
  inbox_.pop_front();
  return received;
}

std::optional<ScriptedPeer::Received> ScriptedPeer::receive(wire::FrameType type) {
  for (;;) {
    auto received = receive();
    if (!received || received->type() == type) return received;
  }
}

void ScriptedPeer::send(const std::vector<std::byte>& bytes, std::uint32_t invalidate_rkey) {
  poll();
  // All frames share one buffer. After a frame that is too long to be sent inline, the world must run before
  // the next frame is sent, or be in immediate mode.
  std::byte* outbox = slab_->data() + std::size_t{receives_} * stride_;
  const bool inlined = bytes.size() <= device_->capabilities().max_inline;
  if (!bytes.empty()) std::memcpy(outbox, bytes.data(), bytes.size());
  const fabric::Sge sge{reinterpret_cast<std::uint64_t>(outbox), static_cast<std::uint32_t>(bytes.size()),
                        slab_region_->lkey()};
  fabric::SendWr wr;
  wr.opcode = invalidate_rkey != 0 ? fabric::Opcode::send_with_inv : fabric::Opcode::send;
  wr.invalidate_rkey = invalidate_rkey;
  wr.signaled = true;
  wr.inline_data = inlined;
  wr.sges = {&sge, 1};
  qp_->post_send({&wr, 1});
}

void ScriptedPeer::request(std::uint32_t call, std::size_t message_bytes, std::uint16_t credits) {
  send(FrameBytes({static_cast<std::uint8_t>(wire::FrameType::request), 0, credits, call, 7, 0})
           .pad(message_bytes));
}

void ScriptedPeer::respond(std::uint32_t call, std::uint32_t status, std::uint32_t invalidate_rkey) {
  send(FrameBytes({static_cast<std::uint8_t>(wire::FrameType::response), 0, 0, call, status, 0}).pad(4),
       invalidate_rkey);
}

void ScriptedPeer::transfer(fabric::Opcode opcode, std::uint64_t addr, std::uint32_t bytes,
                            std::uint32_t rkey) {
  poll();
  const fabric::Sge sge{address(0), bytes, region_->lkey()};
  fabric::SendWr wr;
  wr.opcode = opcode;
  wr.signaled = true;
  wr.sges = {&sge, 1};
  wr.remote_addr = addr;
  wr.rkey = rkey;
  qp_->post_send({&wr, 1});
}

std::uint32_t ScriptedPeer::expose(std::uint64_t offset, std::uint32_t bytes, std::uint32_t access) {
  if (!device_->capabilities().windows) return region_->rkey();
  windows_.push_back(device_->alloc_mw());
  fabric::SendWr wr;
  wr.wr_id = kQuiet;
  wr.opcode = fabric::Opcode::bind_mw;
  wr.signaled = true;
  wr.bind = {windows_.back().get(), region_.get(), address(offset), bytes, access};
  qp_->post_send({&wr, 1});
  return windows_.back()->rkey();
}

std::optional<fabric::WcStatus> ScriptedPeer::outcome() {
  poll();
  if (outcomes_.empty()) return std::nullopt;
  const fabric::WcStatus status = outcomes_.front();
  outcomes_.pop_front();
  return status;
}

}  // namespace rdma_rpc::session::test
