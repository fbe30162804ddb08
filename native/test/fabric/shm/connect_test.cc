// Checks that connect() of shm refuses false addresses, memory whose size could change while it is in use,
// and peers that cannot be reached.
#include <fcntl.h>
#include <sys/mman.h>

#include <fstream>
#include <string>
#include <vector>

#include "fabric/shm/connect/remote_device.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory/segment.h"
#include "fabric/shm/peers.h"

namespace rdma_rpc::fabric::test {
namespace {

shm::AddressBlob blob_of(const QueuePair& qp) {
  shm::AddressBlob blob;
  const auto bytes = qp.local_address();
  EXPECT_EQ(bytes.size(), sizeof blob);
  std::memcpy(&blob, bytes.data(), sizeof blob);
  return blob;
}

std::string connect_with(const shm::AddressBlob& blob) {
  ShmEnd end;
  const std::string reason = end.qp->connect(std::as_bytes(std::span(&blob, 1)));
  EXPECT_EQ(end.qp->state(), reason.empty() ? QpState::rts : QpState::err);
  return reason;
}

/// Returns a copy of the peer's queue pair segment in a memfd with other seals or of another size.
UniqueFd forged_segment(const shm::AddressBlob& blob, std::size_t more_bytes, int seals) {
  UniqueFd fd(::memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::size_t bytes = shm::qp_segment_bytes(blob.receive_slots) + more_bytes;
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  shm::AddressBlob copy = blob;
  copy.qp_fd = static_cast<std::uint32_t>(fd.get());
  EXPECT_EQ(::pwrite(fd.get(), &copy, sizeof copy, 0), static_cast<ssize_t>(sizeof copy));
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(ShmConnect, AnswersAWrongAddressWithTheReason) {
  ShmEnd peer;
  const shm::AddressBlob good = blob_of(*peer.qp);
  struct Row {
    const char* what;
    std::function<void(shm::AddressBlob&)> change;
    const char* reason;
  };
  const std::vector<Row> rows = {
      {"magic", [](auto& blob) { blob.magic ^= 1; }, "not an shm address"},
      {"a newer version", [](auto& blob) { ++blob.version; },
       "the peer has layout version 4 of shared memory, this side version 3; use the same rdma-rpc release"},
      {"an older version", [](auto& blob) { --blob.version; }, "layout version 2"},
      {"start time", [](auto& blob) { ++blob.start_ticks; }, "start time"},
      {"pid", [](auto& blob) { blob.pid = 0; }, "pid namespace"},
      {"slots not a power of two", [](auto& blob) { blob.receive_slots = 3; }, "out of range"},
      {"too many slots", [](auto& blob) { blob.receive_slots = 1u << 31; }, "out of range"},
      {"no slots", [](auto& blob) { blob.receive_slots = 0; }, "out of range"},
      {"no cells in an epoch", [](auto& blob) { blob.epoch_cells = 0; }, "out of range"},
      {"epochs longer than the ring",
       [](auto& blob) { blob.epoch_cells = shm::cells_for(blob.receive_slots) + 1; }, "out of range"},
      {"poller", [](auto& blob) { blob.poller = shm::kPollersMax; }, "out of range"},
      {"device token", [](auto& blob) { blob.device_token[3] ^= std::byte{1}; }, "device segment"},
      {"queue pair token", [](auto& blob) { blob.qp_token[3] ^= std::byte{1}; }, "queue pair"},
      {"other slots", [](auto& blob) { blob.receive_slots *= 2; }, "not a memfd of"},
      {"closed descriptor", [](auto& blob) { blob.qp_fd = 987654; }, "cannot open"},
      {"device is a pipe", [](auto& blob) { blob.device_fd = blob.pipe_fd; }, "kind of file"},
      {"segment is the device", [](auto& blob) { blob.qp_fd = blob.device_fd; }, "not a memfd of"},
      {"other pipe", [](auto& blob) { blob.pipe_fd = blob.qp_fd; }, "its address names"},
  };
  for (const Row& row : rows) {
    shm::AddressBlob blob = good;
    row.change(blob);
    EXPECT_NE(connect_with(blob).find(row.reason), std::string::npos)
        << row.what << ": " << connect_with(blob);
  }
  EXPECT_EQ(connect_with(good), "");
  EXPECT_NE(connect_with(good).find("connected to another"), std::string::npos) << "it has its peer already";
}

TEST(ShmConnect, AnAddressOfAnotherVersionMayHaveAnySize) {
  const std::uint32_t words[64] = {shm::kMagic, kShmVersion + 1};
  for (const std::size_t bytes : {std::size_t{8}, sizeof(shm::AddressBlob) - 4, sizeof words}) {
    ShmEnd end;
    const auto address = std::as_bytes(std::span(words)).first(bytes);
    const std::string reason = end.qp->connect(address);
    EXPECT_NE(reason.find("layout version 4"), std::string::npos) << bytes << ": " << reason;
    EXPECT_EQ(end.qp->state(), QpState::err);
    std::string error;
    EXPECT_TRUE(shm_address_via(address, "/a/path", &error).empty());
    EXPECT_NE(error.find("layout version 4"), std::string::npos) << "to dial it: " << error;
  }
}

/// The address has this side's version, so only the header shows the difference.
TEST(ShmConnect, RefusesTablesWithAnotherLayout) {
  ShmEnd peer;
  const shm::AddressBlob good = blob_of(*peer.qp);
  struct Row {
    const char* what;
    std::function<void(shm::Header&)> change;
    const char* reason;  ///< null when the tables are accepted
  };
  const std::vector<Row> rows = {
      {"another version", [](auto& header) { header.version = kShmVersion + 1; }, "layout version 4"},
      {"another version and token",
       [](auto& header) {
         header.version = kShmVersion + 1;
         header.token = {};
       },
       "layout version 4"},
      {"other sizes", [](auto& header) { ++header.shape; },
       "layout version 3 of shared memory with other sizes"},
      {"another magic", [](auto& header) { ++header.magic; }, "not the one that its address names"},
      {"no sizes, as in builds before 0.1.0", [](auto& header) { header.shape = 0; }, nullptr},
  };
  for (const Row& row : rows) {
    for (const bool announcements : {false, true}) {
      const std::size_t bytes = announcements ? sizeof(shm::Announcements) : sizeof(shm::DeviceSegment);
      const UniqueFd forged(::memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      ASSERT_EQ(::ftruncate(forged.get(), static_cast<off_t>(bytes)), 0);
      shm::Header header{shm::kMagic, kShmVersion, good.device_token, shm::kShape};
      row.change(header);
      ASSERT_EQ(::pwrite(forged.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
      ASSERT_EQ(::fcntl(forged.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
      shm::AddressBlob blob = good;
      (announcements ? blob.announcements_fd : blob.device_fd) = static_cast<std::uint32_t>(forged.get());
      const std::string reason = connect_with(blob);
      if (row.reason == nullptr) {
        // The forged file is accepted. The attempt fails later, at the segment of the queue pair, whose
        // content is unchanged.
        EXPECT_NE(reason.find("the peer's queue pair is not"), std::string::npos)
            << row.what << ": " << reason;
      } else if (!announcements || std::string(row.what) != "another magic") {
        EXPECT_NE(reason.find(row.reason), std::string::npos) << row.what << ": " << reason;
      }
    }
  }
}

TEST(ShmConnect, RefusesMemoryThatItsOwnerCouldResize) {
  ShmEnd peer;
  const shm::AddressBlob good = blob_of(*peer.qp);
  struct Row {
    const char* what;
    std::size_t more_bytes;
    int seals;
    bool accepted;
  };
  const int fixed = F_SEAL_SHRINK | F_SEAL_GROW;
  for (const Row& row : {Row{"as it should be", 0, fixed, true}, Row{"not sealed", 0, 0, false},
                         Row{"may grow", 0, F_SEAL_SHRINK, false}, Row{"may shrink", 0, F_SEAL_GROW, false},
                         Row{"too large", 1, fixed, false}, Row{"a page too large", 4096, fixed, false}}) {
    const UniqueFd forged = forged_segment(good, row.more_bytes, row.seals);
    shm::AddressBlob blob = good;
    blob.qp_fd = static_cast<std::uint32_t>(forged.get());
    const std::string reason = connect_with(blob);
    EXPECT_EQ(reason.empty(), row.accepted) << row.what << ": " << reason;
    EXPECT_EQ(reason.find("sealed") != std::string::npos, !row.accepted) << row.what << ": " << reason;
  }
}

TEST(ShmConnect, APeerCanNeitherResizeOurMemoryNorWriteOurTables) {
  const ShmEnd end;
  const shm::AddressBlob blob = blob_of(*end.qp);
  const std::string path = "/proc/self/fd/" + std::to_string(blob.qp_fd);
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(file);
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
  EXPECT_NE(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  std::string error;
  const auto self = shm::this_process();
  constexpr std::size_t kBytes = sizeof(shm::DeviceSegment);
  EXPECT_TRUE(shm::map_peer_memfd(self, blob.device_fd, kBytes, shm::PeerMay::read, &error)) << error;
  EXPECT_FALSE(shm::map_peer_memfd(self, blob.device_fd, kBytes, shm::PeerMay::write, &error));
}

TEST(ShmConnect, AnotherUserIsToldWhy) {
  if (::geteuid() != 0) GTEST_SKIP() << "not run: only root can become another user";
  const ShmEnd end;
  const ShmHello hello = hello_of(end);
  ChildProcess child([&hello](int) {
    if (::setresuid(65534, 65534, 65534) != 0) return 1;
    ShmEnd other;
    return other.qp->connect(hello.blob()).find("must run as the same user") != std::string::npos ? 0 : 2;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(ShmConnect, QueuePairsToOneDeviceShareItsMappings) {
  ShmEnd here, there;
  std::string error;
  const auto second = there.device->create_qp(*there.cq, {}, &error);
  const auto more = here.device->create_qp(*here.cq, {}, &error);
  const auto before = here.device->counters().open_fds;
  ASSERT_EQ(here.qp->connect(there.qp->local_address()), "");
  ASSERT_EQ(more->connect(second->local_address()), "");
  EXPECT_EQ(here.device->counters().open_fds, before + 1) << "they share the peer's pipe";
}

/// Returns the number of mappings of memfds with this name in this process.
int mappings_of(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:rdma-rpc:" + name) != std::string::npos) ++count;
  }
  return count;
}

/// Connects again, and writes to the peer's memory, which maps it.
void write_to(ShmEnd& here, ShmEnd& peer) {
  peer.open_qp();
  here.open_qp();
  ASSERT_EQ(here.qp->connect(peer.qp->local_address()), "");
  ASSERT_EQ(peer.qp->connect(here.qp->local_address()), "");
  ASSERT_TRUE(peer.bind_all(access_remote_write));
  const Sge sge = here.sge(0, 64);
  ASSERT_TRUE(here.post(Opcode::rdma_write, 1, {&sge, 1}, peer.region->addr(), peer.window->rkey()));
  ASSERT_EQ(here.next().status, WcStatus::success);
}

TEST(ShmConnect, TablesAndALittleMemoryOfTheLastReleasedDeviceStayMapped) {
  const ShmOptions mapped{.any_memory = false};
  ShmEnd here(mapped), there(mapped), third(mapped);
  const int devices = mappings_of("device"), memories = mappings_of("test memory");
  for (ShmEnd* peer : {&there, &there, &third}) {
    write_to(here, *peer);
    here.qp.reset();
    EXPECT_EQ(mappings_of("test memory"), memories + 1) << "of the last one";
    peer->qp.reset();
    EXPECT_EQ(mappings_of("device"), devices + (peer == &third ? 3 : 2)) << "ours of theirs, theirs of ours";
  }
}

TEST(ShmConnect, MemoryThatThePeerReleasedDoesNotStayMapped) {
  const ShmOptions mapped{.any_memory = false};
  ShmEnd here(mapped), there(mapped);
  const int memories = mappings_of("test memory");
  write_to(here, there);
  there.free_memory();
  here.qp.reset();
  EXPECT_EQ(mappings_of("test memory"), memories - 1) << "it would be kept";
}

TEST(ShmConnect, LargeMemoryOfAReleasedDeviceDoesNotStayMapped) {
  const ShmOptions mapped{.any_memory = false};
  ShmEnd here(mapped), there(mapped, shm::kReleasedBytesMax + kPageBytes);
  const int memories = mappings_of("test memory");
  write_to(here, there);
  EXPECT_EQ(mappings_of("test memory"), memories + 1);
  here.qp.reset();
  EXPECT_EQ(mappings_of("test memory"), memories) << "it would be kept when the peer has ended";
}

TEST(ShmConnect, AFailedAttemptLeavesNothingOfAReleasedDeviceMapped) {
  const ShmOptions mapped{.any_memory = false};
  ShmEnd here(mapped), there(mapped), third(mapped);
  ASSERT_EQ(here.qp->connect(there.qp->local_address()), "");
  here.open_qp();
  there.open_qp();
  ASSERT_EQ(third.qp->connect(there.qp->local_address()), "");
  const int slabs = mappings_of("test slab");
  EXPECT_NE(here.qp->connect(there.qp->local_address()).find("connected to another"), std::string::npos);
  EXPECT_EQ(mappings_of("test slab"), slabs);
}

TEST(ShmConnect, AQueuePairHoldsNoDescriptorOnceItsPeerHasMappedIt) {
  ShmEnd here, there;
  std::string error;
  const auto before = here.device->counters().open_fds;
  std::vector<std::unique_ptr<QueuePair>> mine, theirs;
  for (int i = 0; i < 100; ++i) {
    mine.push_back(here.device->create_qp(*here.cq, {}, &error));
    theirs.push_back(there.device->create_qp(*there.cq, {}, &error));
    ASSERT_EQ(mine.back()->connect(theirs.back()->local_address()), "");
    ASSERT_EQ(theirs.back()->connect(mine.back()->local_address()), "");
  }
  // The peer's pipe and the last mappings may still be open.
  EXPECT_LE(here.device->counters().open_fds, before + 1 + 2);
  mine.clear();
  EXPECT_EQ(here.device->counters().open_fds, before);
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
