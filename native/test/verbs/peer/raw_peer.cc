// See raw_peer.h.
#include "verbs/peer/raw_peer.h"

#include <time.h>

#include <algorithm>
#include <cstring>

namespace rdma_rpc::session::test {

namespace {
constexpr int kOwnCanary = 0x5c;
constexpr int kWaitsMax = 20'000;
}  // namespace

RawPeer::RawPeer(Ends& ends, bool victim_is_client)
    : ends_(ends), victim_(victim_is_client ? ends.client : ends.server) {
  session_ = victim_.open({victim_is_client, kInflight, 16u << 20, 16u << 20});
  peer_ = std::make_unique<ScriptedPeer>(open_device(victim_is_client ? kServerEnd : kClientEnd),
                                         !victim_is_client, kInflight, small_context().slot_bytes);
  peer_->connect(victim_.session(session_));
  ends_.until([&] { return peer_->connected() && victim_.is_up(session_); }, "the raw peer's connection");
}

ScriptedPeer::Received RawPeer::request(const CallSpec& spec) {
  id_ = victim_.start(session_, spec);
  std::optional<ScriptedPeer::Received> frame;
  ends_.until(
      [&] {
        if (!frame) frame = peer_->receive(wire::FrameType::request);
        return frame.has_value();
      },
      "a request at the raw peer");
  return frame.value_or(ScriptedPeer::Received{});
}

fabric::WcStatus RawPeer::shoot(const Aim& aim, std::span<const std::byte> watched) {
  const std::vector<std::byte> before(watched.begin(), watched.end());
  std::memset(peer_->memory(), kOwnCanary, ScriptedPeer::kMemoryBytes);
  if (aim.write) {
    peer_->write(aim.addr, aim.bytes, aim.rkey);
  } else {
    peer_->read(aim.addr, aim.bytes, aim.rkey);
  }
  std::optional<fabric::WcStatus> outcome;
  for (int i = 0; !outcome && i < kWaitsMax; ++i) {
    const timespec moment{0, 500'000};
    ::nanosleep(&moment, nullptr);
    // Over tcp the CPU does the device's work, so this function polls, but takes no completion.
    if (over_tcp()) victim_.context->cq().poll({});
    outcome = peer_->outcome();
  }
  EXPECT_TRUE(outcome.has_value()) << "the request never completed";
  EXPECT_TRUE(std::equal(watched.begin(), watched.end(), before.begin())) << "memory was written";
  const std::span own(peer_->memory(), ScriptedPeer::kMemoryBytes);
  const auto untouched = [](std::byte b) { return b == static_cast<std::byte>(kOwnCanary); };
  EXPECT_TRUE(std::all_of(own.begin(), own.end(), untouched)) << "memory was read";
  return outcome.value_or(fabric::WcStatus::success);
}

void RawPeer::expect_session_ends() {
  ends_.until(
      [&] {
        peer_->connected();  // over tcp a peer that does not poll answers no READ
        return victim_.is_down(session_);
      },
      "the end of the session with the raw peer");
  // When no request reports the end, only rdma_cm would report it to the peer, and the peer does not query
  // rdma_cm.
  EXPECT_TRUE(!peer_->alive() || !victim_.device->capabilities().names_refusals);
  EXPECT_TRUE(id_ == 0 || ends_.call(id_).ended());
}

}  // namespace rdma_rpc::session::test
