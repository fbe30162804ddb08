// Runs every order of the steps in which two sides of a shm connection publish, sleep, wake, revoke and copy,
// within the limits of each test. The tests run the code of native/fabric/shm itself, with values as old as
// its memory orders allow (memory.h).
#include <gtest/gtest.h>
#include <sched.h>

#include "model/end.h"

namespace rdma_rpc::fabric::model {
namespace {

class ShmModel : public testing::Test {
 protected:
  // The model has one CPU: only one thread runs at a time, and the CPU number of a side is a word that the
  // other side reads.
  void SetUp() override {
    ::sched_getaffinity(0, sizeof everywhere_, &everywhere_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t cpu = 0; CPU_COUNT(&one) == 0 && cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &everywhere_)) CPU_SET(cpu, &one);
    }
    ::sched_setaffinity(0, sizeof one, &one);
  }
  void TearDown() override { ::sched_setaffinity(0, sizeof everywhere_, &everywhere_); }

  static constexpr std::uint64_t kFewest = 100;
  static void holds(const Limits& limits, const std::function<void(Execution&)>& scenario) {
    const Explored explored = explore(limits, scenario);
    EXPECT_EQ(explored.failure, "") << "in execution " << explored.runs << ", whose last steps are\n"
                                    << explored.trace;
    // Fewer runs would mean that the loads and stores of the scenario were not counted as steps.
    EXPECT_GT(explored.failure.empty() ? explored.runs : kFewest, kFewest - 1);
  }

 private:
  cpu_set_t everywhere_{};
};

/// Expects that a message of `bytes` from a's memory at `offset` has arrived complete.
void expect_message(Execution& run, const Ends& ends, const Wc& wc, std::size_t offset, std::size_t bytes) {
  run.expect(wc.status == WcStatus::success && wc.opcode == Opcode::recv && wc.bytes == bytes,
             "another completion than the message's");
  if (run.over()) return;
  run.touch(ends.b.at(wc.wr_id), bytes, false);
  run.expect(std::memcmp(ends.b.at(wc.wr_id), ends.a.memory->data() + offset, bytes) == 0,
             "a message has arrived with other bytes");
}

/// Every published message must be noticed, in each of the ways to notice it.
class ShmModelWake : public ShmModel, public testing::WithParamInterface<Looks> {
 protected:
  /// A side that alternates between the two ways stops in one of these states.
  static void poll_idly(const End& end) {
    if (GetParam() != Looks::in_turns) return;
    Wc none;
    EXPECT_EQ(end.cq->poll({&none, 0}), 0u);
  }
  static void finds_two_messages(std::uint32_t epoch_cells) {
    holds({.switches = 2, .old_values = 1}, [epoch_cells](Execution& run) {
      Ends ends(2, GetParam(), epoch_cells);
      run.threads(
          [&] {
            ends.a.send(8);
            ends.a.send(8, 64);
          },
          [&] {
            Wc wc;
            for (std::size_t i = 0; i < 2 && ends.b.next(run, &wc); ++i) {
              expect_message(run, ends, wc, i * 64, 8);
              ends.b.post_recv(wc.wr_id);
            }
          });
    });
  }
};

TEST_P(ShmModelWake, AMessageWakesASleeper) {
  holds({.switches = 4, .old_values = 2}, [](Execution& run) {
    Ends ends(2, GetParam());
    run.threads([&] { ends.a.send(8); },
                [&] {
                  Wc wc;
                  if (ends.b.next(run, &wc)) expect_message(run, ends, wc, 0, 8);
                });
  });
}

TEST_P(ShmModelWake, ASleeperIsWokenEachTime) { finds_two_messages(ShmOptions{}.epoch_cells); }

TEST_P(ShmModelWake, ASleeperFindsAMessageThatBeginsAnEpoch) { finds_two_messages(1); }

TEST_P(ShmModelWake, TwoSidesThatAnswerEachOtherSleepAndWake) {
  holds({.switches = 2, .old_values = 1}, [](Execution& run) {
    Ends ends(2, GetParam());
    const auto answers = [&run](End& end, bool first) {
      if (first) end.send(8);
      for (Wc wc; end.next(run, &wc);) {
        if (!first) end.send(8);
        return;
      }
    };
    run.threads([&] { answers(ends.a, true); }, [&] { answers(ends.b, false); });
  });
}

TEST_P(ShmModelWake, AFaultWakesASleeper) {
  holds({.switches = 2, .old_values = 1}, [](Execution& run) {
    Ends ends(1, GetParam());
    const Sge sge = ends.a.sge(0, 8);
    run.threads(
        [&] {
          ends.a.post(Opcode::rdma_write, {&sge, 1}, ends.b.region->addr(), 0x1234);
        },
        [&] {
          Wc wc;
          if (!ends.b.next(run, &wc)) return;
          run.expect(wc.status == WcStatus::wr_flush_err, "another completion than the flush");
        });
  });
}

TEST_P(ShmModelWake, AMessageDuringTheSwitchToSleepIsFound) {
  holds({.switches = 3, .old_values = 1}, [](Execution& run) {
    Ends ends(2, GetParam());
    poll_idly(ends.b);
    run.threads([&] { ends.a.send(8); },
                [&] {
                  poll_idly(ends.b);
                  Wc wc;
                  if (ends.b.next(run, &wc)) expect_message(run, ends, wc, 0, 8);
                });
  });
}

INSTANTIATE_TEST_SUITE_P(, ShmModelWake, testing::Values(Looks::by_itself, Looks::when_told, Looks::in_turns),
                         [](const auto& info) {
                           return info.param == Looks::by_itself   ? "LooksByItself"
                                  : info.param == Looks::when_told ? "LooksWhenTold"
                                                                   : "LooksInTurns";
                         });

TEST_F(ShmModel, MessagesSentBeforeAFaultArrive) {
  holds({.switches = 2, .old_values = 1}, [](Execution& run) {
    Ends ends;
    const Sge sge = ends.a.sge(0, 8);
    run.threads(
        [&] {
          ends.a.send(8);
          ends.a.post(Opcode::rdma_write, {&sge, 1}, ends.b.region->addr(), 0x1234);
        },
        [&] {
          Wc wc;
          if (ends.b.next(run, &wc)) expect_message(run, ends, wc, 0, 8);
        });
  });
}

TEST_F(ShmModel, MessagesOfEveryNumberOfCellsArriveWhole) {
  // Both sides have two receives and eight cells, so that cells and receives are reused. Each message is
  // answered, and the answer permits one more message.
  constexpr std::size_t kBytes[] = {8, 100, 200, 300, 20, 236};
  holds({.switches = 1, .old_values = 1}, [&](Execution& run) {
    Ends ends;
    run.threads(
        [&] {
          std::size_t allowed = 2;
          for (std::size_t i = 0; i < std::size(kBytes); ++i) {
            for (Wc wc; allowed == 0;) {
              if (!ends.a.next(run, &wc)) return;
              ends.a.post_recv(wc.wr_id);
              ++allowed;
            }
            --allowed;
            run.expect(ends.a.send(kBytes[i], i * 256), "a message was refused");
            run.expect(ends.a.qp->state() == QpState::rts, "a message has failed");
          }
        },
        [&] {
          Wc wc;
          for (std::size_t i = 0; i < std::size(kBytes) && ends.b.next(run, &wc); ++i) {
            expect_message(run, ends, wc, i * 256, kBytes[i]);
            if (run.over()) return;
            // The receive belongs to the application until it is posted.
            run.touch(ends.b.at(wc.wr_id), End::kSlotBytes, true);
            ends.b.post_recv(wc.wr_id);
            if (i + 2 < std::size(kBytes)) ends.b.send(4);
          }
        });
  });
}

/// Epochs have one cell. Before each message, the owner has read the earlier messages, has not read them, or
/// reports too late that it has read them.
TEST_F(ShmModel, NoUnreadMessageIsOverwritten) {
  constexpr std::size_t kBytes[] = {8, 100, 20};
  holds({.switches = 2, .old_values = 1}, [&](Execution& run) {
    Ends ends(4, Looks::by_itself, 1);
    run.threads(
        [&] {
          for (std::size_t i = 0; i < std::size(kBytes); ++i)
            run.expect(ends.a.send(kBytes[i], i * 256), "a message was refused");
        },
        [&] {
          Wc wc;
          for (std::size_t i = 0; i < std::size(kBytes) && ends.b.next(run, &wc); ++i) {
            expect_message(run, ends, wc, i * 256, kBytes[i]);
            if (run.over()) return;
            ends.b.post_recv(wc.wr_id);
          }
        });
  });
}

TEST_F(ShmModel, AReceiveIsFilledOnlyOnceItIsPostedAgain) {
  holds({.switches = 2, .old_values = 1}, [](Execution& run) {
    Ends ends(1);
    run.threads(
        [&] {
          ends.a.send(300);
          ends.a.send(300);  // the message finds the receive that was posted again, or no receive
        },
        [&] {
          Wc wc;
          if (!ends.b.next(run, &wc)) return;
          expect_message(run, ends, wc, 0, 300);
          run.touch(ends.b.at(wc.wr_id), End::kSlotBytes, true);
          ends.b.post_recv(wc.wr_id);
        });
  });
}

TEST_F(ShmModel, AFlushedReceiveIsNotAccessed) {
  holds({.switches = 3, .old_values = 1}, [](Execution& run) {
    Ends ends(1);
    run.threads([&] { ends.a.send(300); },
                [&] {
                  Wc wc;
                  ends.b.qp->to_error();
                  if (ends.b.next(run, &wc)) run.touch(ends.b.at(0), End::kSlotBytes, true);
                });
  });
}

TEST_F(ShmModel, AReceiveOfADestroyedQueuePairIsNotAccessed) {
  holds({.switches = 2, .old_values = 1}, [](Execution& run) {
    Ends ends(1);
    run.threads([&] { ends.a.send(300); },
                [&] {
                  ends.b.qp.reset();
                  run.touch(ends.b.at(0), End::kSlotBytes, true);
                });
  });
}

/// A READ (true) or a WRITE (false) of b's memory by a is in progress while b revokes the access.
class ShmModelWindow : public ShmModel, public testing::WithParamInterface<bool> {
 protected:
  /// `revoke` revokes the window with the key `key`. It returns true when the window is revoked and its
  /// memory is no longer accessed.
  static void is_left_alone(const std::function<bool(Execution&, Ends&, std::uint32_t key)>& revoke) {
    const bool read = GetParam();
    holds({.switches = 2, .old_values = 1}, [&](Execution& run) {
      Ends ends(1);
      ends.b.bind(read ? access_remote_read : access_remote_write);
      const std::uint32_t key = ends.b.window->rkey();
      const Sge sge = ends.a.sge(0, 128);
      const Opcode opcode = read ? Opcode::rdma_read : Opcode::rdma_write;
      run.threads(
          [&] {
            ends.a.post(opcode, {&sge, 1}, ends.b.region->addr(), key);
          },
          [&] {
            if (revoke(run, ends, key)) run.touch(ends.b.memory->data(), 128, true);
          });
    });
  }
};

TEST_P(ShmModelWindow, IsNotAccessedAfterItsInvalidationHasCompleted) {
  is_left_alone([](Execution& run, Ends& ends, std::uint32_t key) {
    ends.b.post(Opcode::local_inv, {}, 0, key, true);
    for (Wc wc; ends.b.next(run, &wc);) {
      if (wc.opcode != Opcode::local_inv) continue;
      run.expect(wc.status == WcStatus::success, "the invalidation has failed");
      return true;
    }
    return false;
  });
}

TEST_P(ShmModelWindow, OfAQueuePairInErrorIsNotAccessed) {
  is_left_alone([](Execution& run, Ends& ends, std::uint32_t) {
    Wc wc;
    ends.b.qp->to_error();
    return ends.b.next(run, &wc);
  });
}

INSTANTIATE_TEST_SUITE_P(, ShmModelWindow, testing::Bool(),
                         [](const auto& info) { return info.param ? "Read" : "Written"; });

}  // namespace
}  // namespace rdma_rpc::fabric::model
