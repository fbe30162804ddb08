// Implements a misbehaving peer: a bare queue pair of a device that builds frames by hand and READs and
// WRITEs any address. Two correct ends run beside it. This code runs on the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "session/hostile/scripted_peer.h"
#include "verbs/devices/ends.h"

namespace rdma_rpc::session::test {

/// The target of a hostile peer.
struct Aim {
  bool write = false;
  std::uint64_t addr = 0;
  std::uint32_t bytes = 0;
  std::uint32_t rkey = 0;
};

class RawPeer {
 public:
  static constexpr std::uint32_t kInflight = 4;

  /// Connects the peer to a new session of one side of `ends`, from the other end's device.
  RawPeer(Ends& ends, bool victim_is_client);

  std::uint32_t session() const { return session_; }
  Side& victim() { return victim_; }
  ScriptedPeer& peer() { return *peer_; }
  /// Makes the victim call this peer. Returns the request that arrives.
  ScriptedPeer::Received request(const CallSpec& spec);
  std::uint64_t id() const { return id_; }
  /// Executes one READ or WRITE while no code of the victim's session runs. Checks that the bytes of
  /// `watched` and the memory of the peer stay unchanged.
  fabric::WcStatus shoot(const Aim& aim, std::span<const std::byte> watched);
  /// Expects that the peer's session ends; the caller checks the victim's other sessions.
  void expect_session_ends();

 private:
  Ends& ends_;
  Side& victim_;
  std::uint32_t session_ = 0;
  std::unique_ptr<ScriptedPeer> peer_;
  std::uint64_t id_ = 0;
};

}  // namespace rdma_rpc::session::test
