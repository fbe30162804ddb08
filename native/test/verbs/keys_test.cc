// A misbehaving peer misuses keys: outside the range that was granted, in the wrong direction, too late, or
// on another queue pair. The peer also uses keys that were never granted. The device refuses such a request,
// and no byte is read or written. Only that peer's session ends. Another session continues with a call that
// was in progress.
#include <gtest/gtest.h>

#include <functional>

#include "verbs/devices/census.h"
#include "verbs/peer/raw_peer.h"

namespace rdma_rpc::session::test {
namespace {

using boundary::Reason;
using fabric::WcStatus;
using wire::FrameType;

/// Guard bytes around each segment of the application's buffers (Side).
constexpr std::uint64_t kGuard = 16;
constexpr std::uint64_t kEndOfMemory = ~std::uint64_t{0};

/// The memory that a client has exposed to the raw peer for one call: two segments of the request, and a
/// reply buffer.
struct Exposed {
  RawPeer& raw;
  Ends& ends;
  /// Bytes outside a window that the device nevertheless lets the peer access: those of the region.
  std::uint64_t lax;
  wire::GatherEntry gather_entry, other_gather_entry;
  wire::ReplyBuffer reply_buffer;
  std::uint32_t call;
};

struct Trick {
  const char* name;
  std::function<Aim(Exposed&)> aim;
  bool in_region = false;  ///< outside the window, but within the region of its memory
};
void PrintTo(const Trick& trick, std::ostream* out) { *out << trick.name; }
std::string trick_name(const testing::TestParamInfo<Trick>& info) { return info.param.name; }

const CallSpec kExposing{.request_bytes = 6000, .request_gather_entries = 2, .given_reply_buffer = 5000};

Exposed expose(RawPeer& raw, Ends& ends) {
  const auto request = raw.request(kExposing);
  return {raw,
          ends,
          ends.client.device->capabilities().exact_windows ? 0 : kGuard,
          wire::gather_entry_at(request.bytes.data(), request.frame, 0),
          wire::gather_entry_at(request.bytes.data(), request.frame, 1),
          request.frame.reply_buffer,
          request.frame.header.call};
}

/// Answers the call as a correct server does, and waits for its end.
void answer(Exposed& exposed) {
  exposed.raw.peer().respond(exposed.call, 0, exposed.gather_entry.rkey);
  exposed.ends.call(exposed.raw.id()).began = 1;
  exposed.ends.until([&] { return exposed.ends.call(exposed.raw.id()).ended(); }, "the end of the call");
  EXPECT_TRUE(exposed.ends.call(exposed.raw.id()).answered());
  EXPECT_EQ(exposed.raw.peer().outcome(), WcStatus::success);
}

/// Cancels the call. The peer has its keys until it confirms the cancel, and not longer.
void cancel(Exposed& exposed) {
  exposed.ends.client.cancel(exposed.raw.id(), Reason::deadline);
  exposed.ends.until([&] { return exposed.ends.call(exposed.raw.id()).ended(); }, "the end of the call");
  exposed.raw.peer().respond(exposed.call, 4);
  exposed.ends.until([&] { return !exposed.ends.call(exposed.raw.id()).holds(); }, "its keys are back");
  EXPECT_EQ(exposed.raw.peer().outcome(), WcStatus::success);
}

class KeysOfAClient : public VerbsFaults, public testing::WithParamInterface<Trick> {};

TEST_P(KeysOfAClient, DoNotWorkElsewhere) {
  Ends ends;
  if (!ends.client.device->capabilities().windows) {
    GTEST_SKIP() << "not run: the device has no windows; a session then exposes a slab of its own as a whole";
  }
  if (!ends.client.device->capabilities().exact_windows && GetParam().in_region) {
    GTEST_SKIP() << "not run: the device does not keep the bounds of windows, only those of regions";
  }
  const Link honest = ends.connect();
  RawPeer raw(ends, true);
  CallSpec slow{.request_bytes = 30'000, .response_bytes = 30'000, .given_reply_buffer = 30'000};
  slow.answer = Answer::later;
  const std::uint64_t held = ends.start(honest, slow);
  ends.until([&] { return ends.server.unanswered() == 1; }, "a call of the honest session");

  Exposed exposed = expose(raw, ends);
  const auto* around = reinterpret_cast<const std::byte*>(exposed.gather_entry.addr - kGuard);
  const auto* reply_buffer = reinterpret_cast<const std::byte*>(exposed.reply_buffer.addr);
  const Aim aim = GetParam().aim(exposed);
  const std::vector<std::byte> reply_buffer_before(reply_buffer, reply_buffer + exposed.reply_buffer.length);
  EXPECT_EQ(raw.shoot(aim, {around, exposed.gather_entry.length + 2 * kGuard}), WcStatus::rem_access_err);
  EXPECT_TRUE(std::equal(reply_buffer_before.begin(), reply_buffer_before.end(), reply_buffer))
      << "the reply buffer was written";
  raw.expect_session_ends();

  EXPECT_FALSE(ends.client.is_down(honest.client)) << ends.client.why_down(honest.client);
  ends.server.answer();
  ends.until([&] { return ends.call(held).ended(); }, "the end of the honest call");
  EXPECT_TRUE(ends.call(held).answered());
  ends.expect_works(honest);
  EXPECT_EQ(ends.finish(), Violations{});
}

INSTANTIATE_TEST_SUITE_P(
    Misused, KeysOfAClient,
    testing::Values(
        Trick{"ReadBeforeTheGatherEntry",
              [](Exposed& e) -> Aim {
                return {false, e.gather_entry.addr - e.lax - 1, 1, e.gather_entry.rkey};
              }},
        Trick{"ReadAcrossItsStart",
              [](Exposed& e) -> Aim {
                return {false, e.gather_entry.addr - e.lax - 1, 2, e.gather_entry.rkey};
              }},
        Trick{
            "ReadAcrossItsEnd",
            [](Exposed& e) -> Aim {
              return {false, e.gather_entry.addr + e.gather_entry.length + e.lax - 1, 2, e.gather_entry.rkey};
            }},
        Trick{"ReadAfterIt",
              [](Exposed& e) -> Aim {
                return {false, e.gather_entry.addr + e.gather_entry.length + e.lax, 1, e.gather_entry.rkey};
              }},
        Trick{"ReadOfOneByteMore",
              [](Exposed& e) -> Aim {
                const auto bytes = static_cast<std::uint32_t>(e.gather_entry.length + e.lax + 1);
                return {false, e.gather_entry.addr, bytes, e.gather_entry.rkey};
              }},
        Trick{"ReadAroundTheEndOfMemory",
              [](Exposed& e) -> Aim {
                return {false, kEndOfMemory, 2, e.gather_entry.rkey};
              }},
        Trick{"ReadThatWrapsBackToTheGatherEntry",
              [](Exposed& e) -> Aim {
                return {false, kEndOfMemory - 100, 4000, e.gather_entry.rkey};
              }},
        Trick{"WriteThroughTheReadWindow",
              [](Exposed& e) -> Aim {
                return {true, e.gather_entry.addr, 8, e.gather_entry.rkey};
              }},
        Trick{"ReadThroughTheWriteWindow",
              [](Exposed& e) -> Aim {
                return {false, e.reply_buffer.addr, 8, e.reply_buffer.rkey};
              }},
        Trick{"WriteBeforeTheReplyBuffer",
              [](Exposed& e) -> Aim {
                return {true, e.reply_buffer.addr - 1, 2, e.reply_buffer.rkey};
              },
              true},
        Trick{"WriteAcrossItsEnd",
              [](Exposed& e) -> Aim {
                return {true, e.reply_buffer.addr + e.reply_buffer.length - 1, 2, e.reply_buffer.rkey};
              },
              true},
        Trick{"WriteAroundTheEndOfMemory",
              [](Exposed& e) -> Aim {
                return {true, kEndOfMemory - 7, 16, e.reply_buffer.rkey};
              }},
        Trick{"KeyOfTheOtherGatherEntry",
              [](Exposed& e) -> Aim {
                return {false, e.other_gather_entry.addr, 8, e.gather_entry.rkey};
              }},
        Trick{"TheKeyPlusOne",
              [](Exposed& e) -> Aim {
                return {false, e.gather_entry.addr, 8, e.gather_entry.rkey + 1};
              }},
        Trick{"TheKeyMinusOne",
              [](Exposed& e) -> Aim {
                return {false, e.gather_entry.addr, 8, e.gather_entry.rkey - 1};
              }},
        Trick{"KeyZero",
              [](Exposed& e) -> Aim {
                return {false, e.gather_entry.addr, 8, 0};
              }},
        Trick{"TheLocalKeyOfTheMemory",
              [](Exposed& e) -> Aim {
                auto& arena = e.ends.client.context->arena();
                const memory::BlockId block = arena.alloc(4096);
                const memory::Block at = arena.at(block);
                arena.release(block);
                return {true, reinterpret_cast<std::uint64_t>(at.data), 8, at.region->lkey()};
              }},
        Trick{"AStaleKeyAfterTheAnswer",
              [](Exposed& e) -> Aim {
                answer(e);
                return {false, e.gather_entry.addr, 8, e.gather_entry.rkey};
              }},
        Trick{"AStaleKeyOfTheOtherGatherEntry",
              [](Exposed& e) -> Aim {
                answer(e);
                return {false, e.other_gather_entry.addr, 8, e.other_gather_entry.rkey};
              }},
        Trick{"AStaleReplyBufferAfterTheAnswer",
              [](Exposed& e) -> Aim {
                answer(e);
                return {true, e.reply_buffer.addr, 8, e.reply_buffer.rkey};
              }},
        Trick{"AStaleKeyAfterACancel",
              [](Exposed& e) -> Aim {
                cancel(e);
                return {false, e.gather_entry.addr, 8, e.gather_entry.rkey};
              }},
        Trick{"AStaleReplyBufferAfterACancel",
              [](Exposed& e) -> Aim {
                cancel(e);
                return {true, e.reply_buffer.addr, 8, e.reply_buffer.rkey};
              }}),
    trick_name);

class KeysOfOthers : public VerbsFaults {};

TEST_F(KeysOfOthers, AWindowWorksOnItsOwnQueuePairOnly) {
  Ends ends;
  if (!ends.client.device->capabilities().windows) GTEST_SKIP() << "not run: the device has no windows";
  RawPeer owner(ends, true);
  Exposed exposed = expose(owner, ends);
  const auto* gather_entry = reinterpret_cast<const std::byte*>(exposed.gather_entry.addr);
  for (const bool write : {false, true}) {
    RawPeer thief(ends, true);
    const Aim aim = write ? Aim{true, exposed.reply_buffer.addr, 8, exposed.reply_buffer.rkey}
                          : Aim{false, exposed.gather_entry.addr, 8, exposed.gather_entry.rkey};
    EXPECT_EQ(thief.shoot(aim, {gather_entry, exposed.gather_entry.length}), WcStatus::rem_access_err);
    thief.expect_session_ends();
  }
  // The session whose key was stolen continues.
  EXPECT_FALSE(ends.client.is_down(owner.session())) << ends.client.why_down(owner.session());
  answer(exposed);
  ends.client.session(owner.session()).close("the test is over");
  ends.until([&] { return ends.client.is_down(owner.session()); }, "the end");
  EXPECT_EQ(ends.finish(), Violations{});
}

class MemoryOfAServer : public VerbsFaults {
 protected:
  /// A server grants no key. A client could guess the keys under which the server's memory is known locally.
  static void expect_out_of_reach(bool write) {
    Ends ends;
    const Link honest = ends.connect();
    auto& arena = ends.server.context->arena();
    const memory::BlockId block = arena.alloc(8192);
    const memory::Block at = arena.at(block);
    std::fill_n(at.data, 8192, std::byte{0x3c});
    const auto addr = reinterpret_cast<std::uint64_t>(at.data);
    for (const std::uint32_t key : {at.region->lkey(), at.region->lkey() + 1, 0u}) {
      RawPeer raw(ends, false);
      const WcStatus status = raw.shoot({write, addr, 64, key}, {at.data, 8192});
      const bool told = !write || ends.client.device->capabilities().names_refusals;
      EXPECT_TRUE(status != WcStatus::success || !told) << "key " << key;
      raw.expect_session_ends();
      EXPECT_TRUE(std::all_of(at.data, at.data + 8192, [](std::byte b) { return b == std::byte{0x3c}; }));
    }
    arena.release(block);
    ends.expect_works(honest);
    EXPECT_EQ(ends.finish(), Violations{});
  }
};

TEST_F(MemoryOfAServer, CannotBeWritten) { expect_out_of_reach(true); }

TEST_F(MemoryOfAServer, CannotBeRead) {
  if (!open_device(kServerEnd)->capabilities().checks_read_rights)
    GTEST_SKIP()
        << "not run: the device lets any holder of a key READ, whatever its rights (checks_read_rights)";
  expect_out_of_reach(false);
}

/// A segment that the client has not exposed, or that is shorter than the client claims. The server's READ
/// fails, and the session ends.
TEST_F(MemoryOfAServer, IsSafeFromForgedKeys) {
  Ends ends;
  if (!ends.client.device->capabilities().windows) GTEST_SKIP() << "not run: the device has no windows";
  const Link honest = ends.connect();
  for (const std::uint32_t length : {4000u, 4001u}) {
    RawPeer raw(ends, false);
    // The range ends at the end of the peer's region, so that one more byte is also outside the region.
    const std::uint64_t offset = ScriptedPeer::kMemoryBytes - 4000;
    const std::uint32_t key = raw.peer().expose(offset, 4000, fabric::access_remote_read);
    const std::uint32_t said = length == 4000 ? key ^ 0x100 : key;
    raw.peer().send(
        FrameBytes({static_cast<std::uint8_t>(FrameType::request), wire::has_gather_list, 0, 0, 7, 0})
            .add(wire::GatherListHead{length, 1})
            .add(wire::GatherEntry{raw.peer().address(offset), length, said}));
    raw.expect_session_ends();
  }
  ends.expect_works(honest);
  EXPECT_EQ(ends.finish(), Violations{});
}

}  // namespace
}  // namespace rdma_rpc::session::test
