// One side of a modelled shm connection: a device, a queue pair and memory, all in this process. The side
// also has the event loop of an application that sleeps while it has nothing to do. The side runs on the
// thread that the Execution has scheduled.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <memory>
#include <string>

#include "fabric/shm/shm.h"
#include "model/execution.h"

namespace rdma_rpc::fabric::model {

/// The way in which a completion queue notices messages: it polls the ring, the peer announces them, or the
/// two alternate.
enum class Looks { by_itself, when_told, in_turns };

struct End {
  static constexpr std::uint32_t kSlotBytes = 512;
  static constexpr std::size_t kMemoryBytes = 4096;

  End(std::uint32_t receives_, Looks looks, std::uint32_t epoch_cells) : receives(receives_) {
    // Copies are made in parts of one cache line. In the model every revocation succeeds in time, so it never
    // replaces pages.
    ShmOptions options{.copy_chunk_bytes = 64, .revoke_grace_us = 60'000'000, .epoch_cells = epoch_cells};
    if (looks != Looks::by_itself) options.watched_max = looks == Looks::in_turns ? 1 : 0;
    if (looks == Looks::in_turns) options.watched_min = 0, options.polls_per_hand = 1;
    device = open_shm_device(options, &error);
    cq = device->create_cq(64);
    slab = device->alloc_memory(std::size_t{receives} * kSlotBytes, "model slab");
    memory = device->alloc_memory(kMemoryBytes, "model memory");
    slab_region = device->reg_mr(slab->data(), slab->size(), access_local_write, &error);
    region = device->reg_mr(memory->data(), memory->size(), access_local_write | access_mw_bind, &error);
    window = device->alloc_mw();
    qp = device->create_qp(*cq, {.send_wr_max = 16, .recv_wr_max = receives}, &error);
    for (std::uint32_t i = 0; i < receives; ++i) post_recv(i);
  }
  void post_recv(std::uint64_t slot) {
    const RecvWr wr{slot, {reinterpret_cast<std::uint64_t>(at(slot)), kSlotBytes, slab_region->lkey()}};
    qp->post_recv({&wr, 1});
  }
  std::byte* at(std::uint64_t slot) const { return slab->data() + slot * kSlotBytes; }
  Sge sge(std::size_t offset, std::size_t bytes) const {
    return {region->addr() + offset, static_cast<std::uint32_t>(bytes), region->lkey()};
  }
  bool post(Opcode opcode, std::span<const Sge> sges, std::uint64_t remote_addr = 0, std::uint32_t rkey = 0,
            bool signaled = false) const {
    SendWr wr;
    wr.opcode = opcode;
    wr.signaled = signaled;
    wr.sges = sges;
    wr.remote_addr = remote_addr;
    wr.rkey = rkey;
    wr.invalidate_rkey = rkey;
    return qp->post_send({&wr, 1}) == 1;
  }
  bool send(std::size_t bytes, std::size_t offset = 0) const {
    const Sge part = sge(offset, bytes);
    return post(Opcode::send, {&part, 1});
  }
  /// Creates the key of all its memory. Must be called before the threads start.
  void bind(std::uint32_t access) {
    SendWr wr;
    wr.opcode = Opcode::bind_mw;
    wr.bind = {window.get(), region.get(), region->addr(), region->length(), access};
    qp->post_send({&wr, 1});
  }

  /// Gets the next completion, and sleeps until one is available. Returns false when the run is over.
  bool next(Execution& run, Wc* wc) const {
    while (!run.over()) {
      if (cq->poll({wc, 1}) == 1) return true;
      if (!cq->arm()) {
        if (cq->poll({wc, 1}) == 1) return true;
        run.pause();
        continue;
      }
      run.sleep_until([this] {
        pollfd rung{cq->fd(), POLLIN, 0};
        return ::poll(&rung, 1, 0) == 1;
      });
      cq->acknowledge();
    }
    return false;
  }

  const std::uint32_t receives;
  std::string error;
  std::unique_ptr<Device> device;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<HostMemory> slab, memory;
  std::unique_ptr<MemoryRegion> slab_region, region;
  std::unique_ptr<MemoryWindow> window;
  std::unique_ptr<QueuePair> qp;
};

/// Two connected ends.
struct Ends {
  explicit Ends(std::uint32_t receives = 2, Looks looks = Looks::by_itself,
                std::uint32_t epoch_cells = ShmOptions{}.epoch_cells)
      : a(receives, looks, epoch_cells), b(receives, looks, epoch_cells) {
    EXPECT_EQ(a.qp->connect(b.qp->local_address()), "");
    EXPECT_EQ(b.qp->connect(a.qp->local_address()), "");
    for (std::size_t i = 0; i < End::kMemoryBytes; ++i) {
      a.memory->data()[i] = std::byte{static_cast<unsigned char>(i * 7 + i / 64)};
    }
  }
  End a, b;
};

}  // namespace rdma_rpc::fabric::model
