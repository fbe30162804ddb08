// Tests messages that a shm-fd peer sends when it bypasses this code. The queue pair refuses every such
// message with a reason. Nothing else is affected, every wait ends, and no SIGBUS is raised.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/lingering.h"
#include "fabric/shm/fd_liar.h"

namespace rdma_rpc::fabric::test {
namespace {

struct Lie {
  const char* name;
  std::function<void(const Victim&, Liar&)> tell;
  const char* why;  ///< a part of the reason
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

const Lie kLies[] = {
    {"NoDescriptor", [](auto&, auto& liar) { liar.send(note_of(FileKind::device), {}); }, "has not sent"},
    {"TwoDescriptorsWithOneNote",
     [](auto& victim, auto& liar) {
       const UniqueFd file = device_file(victim);
       liar.send(note_of(FileKind::device), {file.get(), file.get()});
     },
     "has not named"},
    {"TwoDescriptorsWithHalfANote",
     [](auto& victim, auto& liar) {
       const UniqueFd file = device_file(victim);
       const FileNote note = note_of(FileKind::device);
       for (std::size_t at = 0; at < 2; ++at)
         liar.send(reinterpret_cast<const char*>(&note) + at, 1, {file.get()});
     },
     "has not named"},
    {"ManyDescriptorsWithOneNote",
     [](auto& victim, auto& liar) {
       const UniqueFd file = device_file(victim);
       liar.send(note_of(FileKind::device), std::vector<int>(32, file.get()));
     },
     "too many"},
    {"AsManyAsTheKernelTakes",
     [](auto& victim, auto& liar) {
       const UniqueFd file = device_file(victim);
       liar.send(note_of(FileKind::device), std::vector<int>(253, file.get()));
     },
     "too many"},
    {"OneWhoseLastCloseTakesAMinute",
     [](auto&, auto& liar) {
       static Lingering lingering;
       liar.send(note_of(FileKind::device), {lingering.give().get()});
     },
     "is not a memfd"},
    {"ADescriptorWithABell",
     [](auto& victim, auto& liar) {
       const UniqueFd file = device_file(victim);
       const Note bell = Note::bell;
       liar.send(&bell, 1, {file.get()});
     },
     "has not named"},
    {"APipe",
     [](auto&, auto& liar) {
       int ends[2];
       ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
       const UniqueFd one(ends[0]), other(ends[1]);
       liar.send(note_of(FileKind::device), {one.get()});
     },
     "is not a memfd"},
    {"AFile",
     [](auto&, auto& liar) {
       const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
       liar.send(note_of(FileKind::device), {file.get()});
     },
     "is not a memfd"},
    {"NotSealed",
     [](auto& victim, auto& liar) { liar.send(note_of(FileKind::device), {device_file(victim, 0).get()}); },
     "sealed against resizing"},
    {"SealedAgainstGrowingOnly",
     [](auto& victim, auto& liar) {
       liar.send(note_of(FileKind::device), {device_file(victim, F_SEAL_GROW).get()});
     },
     "sealed against resizing"},
    {"TooSmall",
     [](auto&, auto& liar) { liar.send(note_of(FileKind::device), {memory_file(4096, kSealed).get()}); },
     "is not a memfd of"},
    {"AnothersDevice",
     [](auto&, auto& liar) {
       liar.send(note_of(FileKind::device), {memory_file(sizeof(shm::DeviceSegment), kSealed).get()});
     },
     "not the one that its address names"},
    {"ADeviceOfAnotherLayoutVersion",
     [](auto& victim, auto& liar) {
       const UniqueFd file = device_file(victim, 0);
       put(file, shm::Header{shm::kMagic, kShmVersion + 1, victim.liar().device_token, shm::kShape});
       ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, kSealed), 0);
       liar.send(note_of(FileKind::device), {file.get()});
     },
     "layout version 4 of shared memory, this side version 3"},
    {"ADeviceOfOtherSizes",
     [](auto& victim, auto& liar) {
       const UniqueFd file = device_file(victim, 0);
       put(file, shm::Header{shm::kMagic, kShmVersion, victim.liar().device_token, shm::kShape + 1});
       ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, kSealed), 0);
       liar.send(note_of(FileKind::device), {file.get()});
     },
     "with other sizes than this side"},
    {"ASecondDevice",
     [](auto& victim, auto& liar) {
       for (int i = 0; i < 2; ++i) liar.send(note_of(FileKind::device), {device_file(victim).get()});
     },
     "second"},
    {"AQueuePairBeforeItsDevice",
     [](auto& victim, auto& liar) {
       liar.send(note_of(FileKind::queue_pair), {queue_pair_file(victim).get()});
     },
     "before its device"},
    {"AMemoryBeforeItsDevice",
     [](auto&, auto& liar) {
       liar.send(note_of(FileKind::memory, 4096), {memory_file(4096, kSealed).get()});
     },
     "before its device"},
    {"AQueuePairOfAnotherSize",
     [](auto& victim, auto& liar) {
       liar.send(note_of(FileKind::device), {device_file(victim).get()});
       liar.send(note_of(FileKind::queue_pair), {queue_pair_file(victim, 4096).get()});
     },
     "is not a memfd of"},
    {"AQueuePairThatCanBeWrittenToNoMore",
     [](auto& victim, auto& liar) {
       liar.send(note_of(FileKind::device), {device_file(victim).get()});
       liar.send(note_of(FileKind::queue_pair), {queue_pair_file(victim, 0, kSealed | F_SEAL_WRITE).get()});
     },
     "cannot map"},
    {"AQueuePairOfAnotherAddress",
     [](auto& victim, auto& liar) {
       liar.send(note_of(FileKind::device), {device_file(victim).get()});
       const std::size_t bytes = shm::qp_segment_bytes(victim.liar().receive_slots);
       liar.send(note_of(FileKind::queue_pair), {memory_file(bytes, kSealed).get()});
     },
     "not the one that its address names"},
    {"AMemoryThatIsLargerThanItSays",
     [](auto& victim, auto& liar) {
       liar.send(note_of(FileKind::device), {device_file(victim).get()});
       FileNote note = note_of(FileKind::memory, 8192);
       note.serial = 1;
       liar.send(note, {memory_file(4096, kSealed).get()});
     },
     "is not a memfd of 8192"},
    {"AMemoryOfNoBytes",
     [](auto& victim, auto& liar) {
       liar.send(note_of(FileKind::device), {device_file(victim).get()});
       FileNote note = note_of(FileKind::memory, 0);
       note.serial = 1;
       liar.send(note, {memory_file(0, kSealed).get()});
     },
     "cannot map"},
    {"AMemoryBeyondTheTable",
     [](auto& victim, auto& liar) {
       liar.send(note_of(FileKind::device), {device_file(victim).get()});
       FileNote note = note_of(FileKind::memory, 4096);
       note.serial = 1;
       note.slot = shm::kMemoriesMax;
       liar.send(note, {memory_file(4096, kSealed).get()});
     },
     "does not list"},
    {"MoreMemoryThanAPeerMayHave",
     [](auto& victim, auto& liar) {
       liar.send(note_of(FileKind::device), {device_file(victim).get()});
       FileNote note = note_of(FileKind::memory, std::uint64_t{17} << 30);
       note.serial = 1;
       liar.send(note, {memory_file(note.bytes, kSealed).get()});
     },
     "more memory than it may"},
    {"ANoteOfNoKind", [](auto&, auto& liar) { liar.send(static_cast<Note>(77)); }, "unknown kind"},
    {"AFileOfNoKind",
     [](auto& victim, auto& liar) {
       liar.send(note_of(static_cast<FileKind>(9)), {device_file(victim).get()});
     },
     "unknown kind"},
    {"ReservedBytes",
     [](auto& victim, auto& liar) {
       FileNote note = note_of(FileKind::device);
       note.reserved = 1;
       liar.send(note, {device_file(victim).get()});
     },
     "reserved"},
    {"TakenTwice", [](auto&, auto& liar) { liar.send(Note::taken), liar.send(Note::taken); }, "twice"},
    {"Refused", [](auto&, auto& liar) { liar.send(Note::refused); }, "has refused"},
    {"HangsUp", [](auto&, auto& liar) { liar.hang_up(); }, "has ended"},
    {"HalfANote",
     [](auto& victim, auto& liar) {
       const FileNote note = note_of(FileKind::device);
       liar.send(&note, 5, {device_file(victim).get()});
       liar.hang_up();
     },
     "has ended"},
};

class ShmFdLies : public ::testing::TestWithParam<Lie> {};

TEST_P(ShmFdLies, AreRefusedWithAReason) {
  Victim victim;
  Liar liar(victim);
  const DeviceCounters before = victim.counters();
  GetParam().tell(victim, liar);
  EXPECT_LT(time_of([&] { EXPECT_EQ(victim.settled(), QpState::err); }), kAtOnce);
  EXPECT_NE(victim.qp().error().find(GetParam().why), std::string::npos) << victim.qp().error();
  EXPECT_LE(victim.counters().open_fds, before.open_fds + 1);
  victim.end();
  EXPECT_EQ(victim.counters().queue_pairs, 0u);
}

INSTANTIATE_TEST_SUITE_P(Shm, ShmFdLies, ::testing::ValuesIn(kLies),
                         [](const auto& about) { return about.param.name; });

TEST(ShmFdHostile, ACorrectPeerIsConnectedAndARefusedOneIsTold) {
  Victim victim;
  Liar liar(victim);
  liar.send(note_of(FileKind::device), {device_file(victim).get()});
  liar.send(note_of(FileKind::queue_pair), {queue_pair_file(victim).get()});
  liar.send(Note::taken);
  EXPECT_EQ(victim.settled(), QpState::rts) << victim.qp().error();

  Victim other;
  Liar refused(other);
  refused.send(static_cast<Note>(77));
  EXPECT_EQ(other.settled(), QpState::err);
  EXPECT_TRUE(refused.was_refused());
}

TEST(ShmFdHostile, UnreadFilesAreClosedOnASeparateThread) {
  Victim victim;
  Liar liar(victim);
  Lingering lingering;
  liar.send(note_of(FileKind::device), {lingering.give().get()});
  EXPECT_LT(time_of([&] { victim.end(); }), kAtOnce);
}

/// The notes are sent one byte at a time, with the descriptor on the first byte: a stream has no message
/// boundaries.
TEST(ShmFdHostile, NotesMayArriveInAnyPortions) {
  Victim victim;
  Liar liar(victim);
  const UniqueFd files[] = {device_file(victim), queue_pair_file(victim)};
  const FileNote notes[] = {note_of(FileKind::device), note_of(FileKind::queue_pair)};
  Wc wc;
  for (int i = 0; i < 2; ++i) {
    const auto* bytes = reinterpret_cast<const char*>(&notes[i]);
    for (std::size_t at = 0; at < sizeof notes[i]; ++at) {
      liar.send(bytes + at, 1, at == 0 ? std::vector<int>{files[i].get()} : std::vector<int>{});
      victim.cq().poll({&wc, 1});
    }
  }
  liar.send(Note::taken);
  EXPECT_EQ(victim.settled(), QpState::rts) << victim.qp().error();
}

/// A peer that uses the right token a second time, or a wrong token, changes nothing.
TEST(ShmFdHostile, AnUnidentifiedPeerTakesNoOthersEntry) {
  Victim victim;
  Liar first(victim);
  Wc wc;
  victim.cq().poll({&wc, 1});
  Liar second(victim);
  victim.cq().poll({&wc, 1});
  first.send(note_of(FileKind::device), {device_file(victim).get()});
  first.send(note_of(FileKind::queue_pair), {queue_pair_file(victim).get()});
  first.send(Note::taken);
  EXPECT_EQ(victim.settled(), QpState::rts) << victim.qp().error();
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
