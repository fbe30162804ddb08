// See path_watch.h.
#include "fabric/tcp/queue/path_watch.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "fabric/tcp/connect/address.h"
#include "fabric/tcp/device.h"
#include "fabric/tcp/queue/queue_pair.h"

namespace rdma_rpc::fabric::tcp {
namespace {

/// Limit of retransmissions without an answer. Above it the path counts as silent. The kernel doubles the
/// time between retransmissions; on a local network, this number of them takes 6 s.
constexpr std::uint32_t kUnansweredMax = 5;
/// The limit of retransmissions when the peer has sent something in the meantime, but has not acknowledged
/// any of the retransmitted bytes. In this case perhaps only one direction is silent, or the network loses
/// many packets. If every fifth packet is lost in either direction, seven attempts in a row fail once in
/// 1,300 times. Seven attempts take 13 s.
constexpr std::uint32_t kUnansweredOfHeardMax = 6;
/// When nothing has come from the peer for this number of milliseconds, the lower limit applies.
constexpr std::uint32_t kSilentMs = 5000;
/// A gap of this length between two checks means that this process was stopped or busy. Retransmissions
/// during the gap say nothing about the current path.
constexpr std::chrono::seconds kStoodStill{3};
/// Minimum number of checks without an answer, because packets that were dropped by this host's own queue are
/// resent twice a second.
constexpr std::uint32_t kLooksLeast = 5;
/// kLooksAtOnce is the number of checks that may ask the kernel (1 to 6 us each) before the rest of the
/// thread has its turn. kPauseMs is the length of the pause that follows. The checks of ten thousand busy
/// sessions take 1.6 s.
constexpr std::size_t kLooksAtOnce = 64;
constexpr std::uint32_t kPauseMs = 10;
/// Number of idle queue pairs that are visited per check; each visit costs a cache line.
constexpr std::size_t kRestsPerLook = 16;

}  // namespace

PathState kernel_path_state(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  int bytes = 0;
  // Usually all bytes have arrived, and this call is cheaper than the other.
  if (::ioctl(fd, SIOCOUTQ, &bytes) != 0 || bytes == 0) return {};
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  // Some systems answer without all fields (path_progress.h). The missing fields are 0, so no connection ends
  // because of them: without retransmissions the path never counts as silent, and without the time of the last
  // packet the higher limit applies. TCP_USER_TIMEOUT then ends a connection that loses what is sent.
  // The number of retransmissions since the last acknowledgement of new data, or the number of probes of a
  // closed window. The kernel of a stopped peer answers such probes.
  return {std::max<std::uint32_t>(info.tcpi_retransmits, info.tcpi_probes),
          static_cast<std::uint64_t>(std::max(bytes, 0)), info.tcpi_last_ack_recv};
}

PathWatch::Found PathWatch::look(const TcpOptions& options, int fd, Clock::time_point now) {
  if (!watched_) {
    // The last bytes have not had a full second to arrive.
    watched_ = std::exchange(sent_, false);
    suspect_ = false;
    slept_through_ = 0;
    answered_ = looked_ = now;
    return watched_ ? Found::under_way : Found::nothing;
  }
  state_ = options.path_state ? options.path_state(fd) : kernel_path_state(fd);
  if (now - std::exchange(looked_, now) > kStoodStill) slept_through_ = state_.unanswered;
  if (state_.unanswered == 0) answered_ = now;
  if (state_.unanswered < slept_through_) slept_through_ = 0;
  if (state_.bytes == 0) {
    watched_ = sent_ = false;
    return Found::nothing;
  }
  // The answer to the last retransmission may be in transit, so it has time until the next check.
  const std::uint32_t most = state_.silent_ms >= kSilentMs ? kUnansweredMax : kUnansweredOfHeardMax;
  const bool many = state_.unanswered >= most && (slept_through_ == 0 || state_.unanswered > slept_through_);
  const bool seemed = std::exchange(suspect_, many);
  const auto least = std::chrono::milliseconds(kLooksLeast * options.path_look_ms);
  silent_ = seemed && suspect_ && now - answered_ >= least;
  return silent_ ? Found::silent : Found::under_way;
}

std::string PathWatch::why(int fd, Clock::time_point now) const {
  Endpoint own, peer;
  const std::string ends = local_endpoint(fd, &own) && remote_endpoint(fd, &peer)
                               ? " from " + to_text(own) + " to " + to_text(peer)
                               : std::string();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - answered_).count();
  return "tcp: the data connection" + ends + " loses what is sent: " + std::to_string(state_.bytes) +
         " bytes were not acknowledged for " + std::to_string(seconds) + " s, in spite of " +
         std::to_string(state_.unanswered) +
         " retransmissions. Look for a firewall that drops or has forgotten this connection, and for an MTU "
         "on the way that is smaller than at its ends";
}

PathTimer::~PathTimer() { device_.reactor().cancel_timeout(*this); }

void PathTimer::run() {
  running_ = true;
  device_.reactor().set_timeout(*this, device_.options().path_look_ms);
}

void PathTimer::expired() {
  if (next_ == 0) sent_ = false;
  const auto now = PathWatch::Clock::now();
  const std::vector<QueuePair*>& all = device_.queue_pairs();
  for (std::size_t cost = 0; next_ < all.size() && cost < kLooksAtOnce * kRestsPerLook; ++next_) {
    QueuePair& qp = *all[next_];
    cost += qp.asks_for_path() ? kRestsPerLook : 1;
    if (qp.check_path(now)) again_ = true;
  }
  if (next_ < all.size()) return device_.reactor().set_timeout(*this, kPauseMs);
  next_ = 0;
  running_ = false;
  sent_ = std::exchange(again_, false) || sent_;
  start();
}

}  // namespace rdma_rpc::fabric::tcp
