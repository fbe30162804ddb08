// Tests violations of the shm-fd protocol by a connected peer.
#include "fabric/shm/fd_liar.h"

namespace rdma_rpc::fabric::test {
namespace {

/// A connected queue pair is woken over the control connection. If only that connection ended, the queue pair
/// would stay up and no side would be woken.
struct LateLie {
  const char* name;
  void (*tell)(const Victim&, Liar&);
  bool is_end;  ///< true when the lie ends the queue pair
};
void PrintTo(const LateLie& lie, std::ostream* out) { *out << lie.name; }

const LateLie kLateLies[] = {
    {"ANoteOfNoKind", [](const Victim&, Liar& liar) { liar.send(static_cast<Note>(77)); }, true},
    {"TakenAgain", [](const Victim&, Liar& liar) { liar.send(Note::taken); }, true},
    {"Refused", [](const Victim&, Liar& liar) { liar.send(Note::refused); }, true},
    {"AnotherDevice",
     [](const Victim& victim, Liar& liar) {
       liar.send(note_of(FileKind::device), {device_file(victim).get()});
     },
     true},
    {"MoreDescriptorsThanCome",
     [](const Victim& victim, Liar& liar) {
       const UniqueFd file = device_file(victim);
       liar.send(note_of(FileKind::memory, 4096), std::vector<int>(32, file.get()));
     },
     true},
    // The peer may have ended normally. Messages that it sent before are still in the ring.
    {"HangsUp", [](const Victim&, Liar& liar) { liar.hang_up(); }, false},
};

class ShmFdLateLies : public ::testing::TestWithParam<LateLie> {};

TEST_P(ShmFdLateLies, EndTheQueuePairWithItsLine) {
  Victim victim;
  Liar liar(victim);
  liar.send(note_of(FileKind::device), {device_file(victim).get()});
  liar.send(note_of(FileKind::queue_pair), {queue_pair_file(victim).get()});
  liar.send(Note::taken);
  ASSERT_EQ(victim.settled(), QpState::rts) << victim.qp().error();
  GetParam().tell(victim, liar);
  victim.cq().acknowledge();  // the received bytes have woken the queue
  EXPECT_EQ(victim.qp().state(), GetParam().is_end ? QpState::err : QpState::rts);
  EXPECT_EQ(victim.qp().error() != "", GetParam().is_end);
}

INSTANTIATE_TEST_SUITE_P(Shm, ShmFdLateLies, ::testing::ValuesIn(kLateLies),
                         [](const auto& about) { return about.param.name; });

}  // namespace
}  // namespace rdma_rpc::fabric::test
