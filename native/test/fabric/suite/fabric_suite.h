// Declares the fixture of the fabric suite: two devices, "client" and "server", with one queue pair each.
// Every other file of this folder contains TEST_P(FabricSuite, ...). A fabric runs all of them by adding one
// file with its own FabricUnderTest and
//   INSTANTIATE_TEST_SUITE_P(Shm, FabricSuite, ::testing::Values(FabricFactory{"shm", make_shm}),
//   factory_name);
// A test asks Capabilities what the fabric supports, and skips the rest with a reason.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/receive_queue.h"

namespace rdma_rpc::fabric {

inline void PrintTo(WcStatus status, std::ostream* out) { *out << to_string(status); }
inline void PrintTo(QpState state, std::ostream* out) { *out << to_string(state); }

namespace test {

/// The fabric under test. This object owns the two devices.
class FabricUnderTest {
 public:
  virtual ~FabricUnderTest() = default;
  virtual Device& client() = 0;
  virtual Device& server() = 0;
  /// Returns the address of a queue pair of the server, in the form in which the client uses it.
  virtual std::vector<std::byte> dialled(std::vector<std::byte> address) { return address; }
  /// Lets a little time pass. The suite calls this function between polls of both completion queues, until
  /// the expected completion has arrived.
  virtual void pump() = 0;
  /// Returns the number of rounds of pump and poll without a completion after which the suite expects no
  /// more.
  virtual int idle_rounds() const { return 1; }
  /// Returns n: tests with very many cases run only every nth case. It is above 1 on fabrics where one case
  /// can take a second.
  virtual std::size_t case_stride() const { return 1; }
};

/// Returns the multicast group ff0e::ffff:239.7.8.9, which networks of IPv4 have, too.
inline Gid group_of_tests() {
  constexpr std::uint8_t kGroup[] = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 7, 8, 9};
  Gid group;
  std::memcpy(group.data(), kGroup, sizeof kGroup);
  return group;
}

struct FabricFactory {
  std::string name;
  std::function<std::unique_ptr<FabricUnderTest>()> make;
};
inline void PrintTo(const FabricFactory& factory, std::ostream* out) { *out << factory.name; }
inline std::string factory_name(const ::testing::TestParamInfo<FabricFactory>& info) {
  return info.param.name;
}

/// Registered memory of one side, with unregistered guard bytes before and behind it.
struct Memory {
  static constexpr std::size_t kGuard = 64;
  std::unique_ptr<HostMemory> host;
  std::unique_ptr<MemoryRegion> region;

  std::byte* data() const { return host->data() + kGuard; }
  /// Sets every byte, including the guards. untouched() tells whether all of them still have the value.
  void paint(std::uint8_t value) const { std::memset(host->data(), value, host->size()); }
  bool untouched(std::uint8_t value) const;
  std::uint64_t addr(std::uint64_t offset = 0) const { return region->addr() + offset; }
  std::uint32_t rkey() const { return region->rkey(); }
  Sge sge(std::uint64_t offset, std::uint64_t length) const {
    return {addr(offset), static_cast<std::uint32_t>(length), region->lkey()};
  }
  void fill(std::uint64_t offset, std::uint64_t length, std::uint32_t seed) const;
  /// Returns whether the range contains what fill() with that seed wrote there.
  bool holds(std::uint64_t offset, std::uint64_t length, std::uint32_t seed) const;
  /// Returns whether every byte of the range has this value.
  bool all(std::uint64_t offset, std::uint64_t length, std::uint8_t value) const;
};

struct Side {
  Device* device = nullptr;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<QueuePair> qp;
  std::deque<Wc> completions;  ///< polled, but not yet checked
};

inline constexpr std::uint32_t kAllRights = access_local_write | access_remote_read | access_remote_write;
inline constexpr std::uint32_t kLocal = access_local_write;
inline constexpr std::uint32_t kBindable = access_local_write | access_mw_bind;

class FabricSuite : public ::testing::TestWithParam<FabricFactory> {
 protected:
  void SetUp() override;
  /// Closes everything, and checks that the counters of both devices have their initial values again.
  void TearDown() override;

  const Capabilities& caps() const { return client_.device->capabilities(); }
  Side& peer_of(Side& side) { return &side == &client_ ? server_ : client_; }

  /// Connects both sides, from INIT to RTS.
  void connect();
  /// Returns the address in the form in which the client uses it.
  std::vector<std::byte> address_of(const QueuePair& server) {
    return fabric_->dialled(server.local_address());
  }
  /// Calls connect() of the client only. Returns false when the client does not reach RTS, because it waits
  /// for the server.
  bool connect_client_alone();
  /// Polls both sides until this queue pair is in RTS or ERR. Returns whether the queue pair is in RTS.
  bool comes_up(QueuePair& qp);
  /// Makes a further connected pair of queue pairs on the completion queues of the two sides. The pair lives
  /// until TearDown. After share_receives() the server's queue pair uses the shared receives, with this tag.
  struct Pair {
    QueuePair* client;
    QueuePair* server;
  };
  Pair another_pair(std::uint32_t tag = 0);
  /// Creates a shared receive queue for the server, which lives until TearDown.
  ReceiveQueue& share_receives(std::uint32_t receives);
  /// Destroys a pair that another_pair() has created.
  void destroy(const QueuePair& qp);
  /// Replaces the pair of the fixture by an unconnected pair of this depth.
  void recreate(const QpOptions& options);

  /// Allocates zeroed memory of a device. The memory lives until TearDown, longer than the queue pairs.
  Memory& memory(Side& side, std::size_t bytes, std::uint32_t access);
  MemoryWindow& window(Side& side);
  /// Executes a bind and checks that it succeeded.
  void bind(Side& side, MemoryWindow& window, const Memory& memory, std::uint64_t offset,
            std::uint64_t length, std::uint32_t access);
  static SendWr bind_wr(MemoryWindow& window, const MemoryRegion& region, std::uint64_t addr,
                        std::uint64_t length, std::uint32_t access);

  /// Posts one request and checks that the queue pair accepted it.
  static void post(QueuePair& qp, const SendWr& wr);
  static void post(Side& side, const SendWr& wr) { post(*side.qp, wr); }
  static void post_recv(Side& side, std::uint64_t wr_id, const Sge& sge);

  /// Returns the next completion of this side. Fails the test when none arrives within the timeout of the
  /// suite.
  Wc next(Side& side);
  /// Works like next(), and also checks the completion's id and status.
  Wc expect(Side& side, std::uint64_t wr_id, WcStatus status = WcStatus::success);
  /// Works like next(), and also checks that the completion has an error of any kind.
  Wc expect_error(Side& side, std::uint64_t wr_id);
  /// Returns whether `there()` says that the bytes of WRITEs have arrived that have completed at their sender.
  /// On a device that does not name refusals (iWARP), a WRITE completes when the network has accepted it, so
  /// the bytes may come later (RFC 5040, section 5.5). There this function waits for them, up to the timeout of
  /// the suite.
  bool arrived(const std::function<bool()>& there);
  /// Returns whether `wc` gives `status` as the reason of the refusal, if the device can know the reason.
  bool refused_with(const Wc& wc, WcStatus status) const;
  /// Checks that both queue pairs have gone to ERR, and removes their flushed receives.
  void expect_both_dead();
  // The following functions are defined in features.cc.
  WcStatus outcome(SendWr wr, std::uint32_t rights);
  bool sleeps_through_a_message();
  std::string attempt(Feature feature);

  std::size_t case_stride() const { return fabric_->case_stride(); }
  void settle_without_polling() { fabric_->pump(); }
  /// Executes everything that can be executed. Completions stay in `completions`.
  void settle();
  /// Returns whether fd() of this side becomes readable. Waits for it up to the timeout of the suite.
  bool becomes_readable(Side& side);
  bool is_readable(Side& side) const;
  /// Calls settle(), then checks that neither side has an unchecked completion.
  void expect_quiet();

  Side client_, server_;

 private:
  void open_pair(const QpOptions& options);
  std::unique_ptr<QueuePair> open_qp(Side& side, QpOptions options);
  void connect_both(QueuePair& client, QueuePair& server);
  std::size_t poll_both();

  std::unique_ptr<FabricUnderTest> fabric_;
  DeviceCounters start_client_, start_server_;
  std::deque<Memory> memories_;
  std::vector<std::unique_ptr<MemoryWindow>> windows_;
  std::vector<std::unique_ptr<QueuePair>> more_;
  std::unique_ptr<ReceiveQueue> shared_receives_;
};

/// Returns a request with the parts that most tests set.
inline SendWr request(Opcode opcode, std::uint64_t wr_id, std::span<const Sge> sges,
                      std::uint64_t remote_addr = 0, std::uint32_t rkey = 0) {
  SendWr wr;
  wr.wr_id = wr_id;
  wr.opcode = opcode;
  wr.signaled = true;
  wr.sges = sges;
  wr.remote_addr = remote_addr;
  wr.rkey = rkey;
  return wr;
}

#define RDMA_RPC_NEEDS(capability) \
  if (!caps().capability) GTEST_SKIP() << "not run: " << caps().name << " has no " #capability

}  // namespace test
}  // namespace rdma_rpc::fabric
