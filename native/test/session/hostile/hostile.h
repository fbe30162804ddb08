// Declares the fixture of the hostile tests: one session whose peer is scripted, and an honest pair in the
// same contexts. Whatever the peer sends or does, only that session ends, every call settles, the memory of
// the application is unchanged, and no resource leaks.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "session/hostile/scripted_peer.h"
#include "session/sides/audit.h"
#include "session/sides/pair.h"

namespace rdma_rpc::session::test {

using boundary::EvKind;
using boundary::Processed;
using boundary::Reason;
using fabric::WcStatus;
using wire::FrameType;
using Violations = std::vector<std::string>;

inline constexpr std::uint32_t kInflight = 4;

inline wire::Header header(FrameType type, std::uint32_t call, std::uint32_t method, std::uint8_t flags = 0,
                           std::uint16_t credits = 0) {
  return {static_cast<std::uint8_t>(type), flags, credits, call, method, 0};
}

/// An honest pair, and a session of `victim` whose peer is scripted.
struct Scene {
  /// With `credit_pool` the victim's receives may be shared. With `seal` the victim seals the frames that it
  /// sends and decrypts those that it receives.
  explicit Scene(bool victim_is_client, PairOptions options = immediate(), bool credit_pool = false,
                 const std::optional<SealOptions>& seal = std::nullopt)
      : pair(options),
        victim(victim_is_client ? pair.client : pair.server),
        session(victim.open(options_of(victim_is_client, options, credit_pool, seal))),
        peer(pair.world, kInflight, options.context.slot_bytes) {
    peer.connect(victim.session(session));
  }
  static SessionOptions options_of(bool is_client, const PairOptions& pair, bool credit_pool,
                                   const std::optional<SealOptions>& seal) {
    SessionOptions options{is_client, kInflight, pair.max_message_bytes, pair.max_message_bytes};
    options.credit_pool = credit_pool;
    options.seal = seal;
    return options;
  }
  void run() { pair.run(); }
  /// Submits a call to the scripted peer and returns the request frame that arrives there.
  ScriptedPeer::Received request(const CallSpec& spec) {
    id = victim.start(session, spec);
    run();
    auto frame = peer.receive(FrameType::request);
    EXPECT_TRUE(frame.has_value());
    return frame ? *frame : ScriptedPeer::Received{};
  }
  CallRecord& call() { return pair.call(id); }
  /// Tells the oracle that the handler of the scripted peer has run.
  void ran(std::uint64_t which) { pair.call(which).began = 1; }
  void expect_survives() {
    run();
    EXPECT_FALSE(victim.is_down(session)) << victim.why_down(session);
    end();
  }
  void expect_dies(const std::string& why) {
    run();
    EXPECT_TRUE(victim.is_down(session)) << "it survived";
    EXPECT_NE(victim.why_down(session).find(why), std::string::npos) << victim.why_down(session);
    end();
  }
  void end() {
    EXPECT_TRUE(pair.complete({.request_bytes = 2000, .response_bytes = 3000}).answered());
    EXPECT_TRUE(pair.complete({}).answered());
    audit_receives(victim, session, "victim");
    if (Session* open = victim.context->find(session)) open->close("the test is over");
    EXPECT_EQ(pair.finish(), Violations{});
  }

  Pair pair;
  Side& victim;
  std::uint32_t session;
  ScriptedPeer peer;
  std::uint64_t id = 0;
};

struct Trick {
  const char* name;
  const char* reason;  ///< the reason why the session ends; empty when it continues
  std::function<void(Scene&)> play;
  bool needs_windows = false;  ///< without windows the trick does no harm, or has another meaning
};
inline void PrintTo(const Trick& trick, std::ostream* out) { *out << trick.name; }

/// Runs the attack on two devices: one on which received messages are read in place, and one on which they
/// are copied first.
inline void play(const Trick& trick, bool victim_is_client) {
  for (const bool copied : {false, true}) {
    SCOPED_TRACE(copied ? "what is received is copied" : "what is received is read in place");
    PairOptions options = immediate();
    options.sim.capabilities.peers_keep_access = copied;
    Scene scene(victim_is_client, options);
    trick.play(scene);
    if (*trick.reason == '\0') {
      scene.expect_survives();
    } else {
      scene.expect_dies(trick.reason);
    }
  }
}

}  // namespace rdma_rpc::session::test
