// Implements queue pairs of libibverbs as perftest creates them: on one completion queue, connected with the
// addresses that the two sides exchange. plugin.cc creates these objects; perf/endpoint.h describes the
// threads.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/unique_fd.h"
#include "fabric/verbs/objects.h"
#include "fabric/verbs/port.h"
#include "perf/bare/address.h"
#include "perf/bare_endpoint.h"

namespace rdma_rpc::perf::bare {

/// The Q_Key for datagrams, on both sides.
inline constexpr std::uint32_t kQkey = 0x11111111;

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* data) const;
};
struct DestroySrq {
  void operator()(ibv_srq* srq) const { ibv_destroy_srq(srq); }
};
struct DestroyAh {
  void operator()(ibv_ah* ah) const { ibv_destroy_ah(ah); }
};

class BareEndpoint final : public Endpoint {
 public:
  explicit BareEndpoint(Transport transport) : transport_(transport) {}
  ~BareEndpoint() override;
  /// Returns "", or why the endpoint could not be opened.
  std::string open(const fabric::VerbsOptions& device, const EndpointOptions& options);

  const Limits& limits() const override { return limits_; }
  std::byte* data() override { return memory_.get(); }
  Memory memory() const override;
  std::vector<std::byte> address(std::uint32_t queue_pair) const override;
  std::string connect(std::uint32_t queue_pair, std::span<const std::byte> peer) override;
  std::string reach(const Memory& peer) override;
  bool is_connected(std::uint32_t queue_pair) const override { return queues_[queue_pair].connected; }
  std::string error(std::uint32_t) const override { return {}; }
  std::size_t post(std::uint32_t queue_pair, std::span<const Request> requests) override;
  bool post_receive(std::uint32_t queue_pair, std::uint64_t id, std::uint64_t to,
                    std::uint32_t length) override;
  std::size_t poll(std::span<Completion> out) override;
  bool arm() override;
  void acknowledge() override;
  int fd() const override { return channel_->fd; }

 private:
  struct Queue {
    fabric::verbs::QpPtr qp;
    std::unique_ptr<ibv_ah, DestroyAh> peer;  ///< address handle for datagrams
    std::uint32_t peer_qp_num = 0;
    std::uint32_t psn = 0;
    bool connected = false;
  };

  std::string open_device(const fabric::VerbsOptions& options);
  std::string open_memory(std::size_t bytes);
  std::string open_queue(const EndpointOptions& options);
  void fill(const Queue& queue, const Request& given, ibv_send_wr* to, ibv_sge* sge) const;
  Address local(const Queue& queue) const;
  std::string move_to_rtr(Queue& queue, const Address& peer);
  std::string join_group(Queue& queue, ibv_ah_attr path);
  std::uint32_t queue_of(std::uint32_t qp_num) const;
  std::string move_to_rts(Queue& queue, const Address& peer);
  ibv_ah_attr path_to(const Address& peer) const;

  const Transport transport_;
  bool multicast_ = false;
  fabric::UniqueFd membership_;   ///< keeps this host in the group
  std::optional<ibv_gid> group_;  ///< the group to leave before the queue pair is destroyed
  // Members in the order of their dependencies: the last is destroyed first.
  fabric::verbs::ContextPtr context_;
  fabric::verbs::Port port_;
  std::uint8_t reads_ = 1;
  std::unique_ptr<std::byte, Unmap> memory_;
  fabric::verbs::PdPtr pd_;
  fabric::verbs::MrPtr region_;
  fabric::verbs::ChannelPtr channel_;
  fabric::verbs::CqPtr cq_;
  std::unique_ptr<ibv_srq, DestroySrq> receives_;  ///< null when each queue pair has receives of its own
  std::vector<Queue> queues_;
  Limits limits_;
  Memory peer_;
  std::size_t memory_bytes_ = 0;
  std::uint64_t memory_address_ = 0;
  // These arrays are kept between posts, so that fields that never change are written once.
  static constexpr std::size_t kBatch = 32;
  std::array<ibv_sge, kBatch> sges_{};
  std::array<ibv_send_wr, kBatch> work_{};
  ibv_sge receive_sge_{};
  ibv_recv_wr receive_{};
  unsigned events_ = 0;  ///< number of events that are not acknowledged to the library yet
  bool stashed_ = false;
  ibv_wc stash_{};  ///< a completion that arm() has polled
};

}  // namespace rdma_rpc::perf::bare
