/** Lists bugs of native/memory, and of calls in native/session that wait for memory; for main.mjs. */
const program = 'memory_test';
const waiting = 'session_test';

export const memoryBugs = [
  {
    name: 'the number of a block that was freed last is reused first',
    file: 'memory/arena.cc',
    from: '      number = spare_slots_.front();\n      spare_slots_.pop_front();',
    to: '      number = spare_slots_.back();\n      spare_slots_.pop_back();',
    program,
    caughtBy: 'Arena.ANumberIsReusedAfterAllOtherFreeOnes',
  },
  {
    name: 'a buffer that several calls use is counted for each of them, but uncounted once',
    file: 'memory/mr_cache.cc',
    from: `      pinned_.splice(pinned_.begin(), idle_, entry);
      pinned_bytes_ += bytes;
    }
`,
    to: `      pinned_.splice(pinned_.begin(), idle_, entry);
    }
    pinned_bytes_ += bytes;
`,
    program,
    caughtBy: 'MrCacheTest.ABufferThatSeveralCallsUseCountsOnce',
  },
  {
    name: 'a buffer that is freed while it is registered in the background goes unnoticed',
    file: 'memory/mr_cache.cc',
    from: '  region->set_presence(std::exchange(background.presence, nullptr));\n',
    to: '',
    program,
    caughtBy: 'BackgroundTest.ABufferWhoseMemoryIsGoneLaterIsNoticed',
  },
  {
    name: 'the peer that has been late for the shortest time loses its memory first',
    file: 'session/memory_shortage.cc',
    from: '      if (late_ns <= longest_ns || ',
    to: '      if (late_ns < kReclaimNs || (latest != nullptr && late_ns >= longest_ns) || ',
    program: waiting,
    caughtBy: 'Reclaim.TheClientStoppedForLongestLosesItsAnswerFirst',
  },
  {
    name: "a call that waits for its own session's limit takes memory from other sessions",
    file: 'memory/arena.cc',
    from: '  if (may_wait && !beyond_own_limit(bytes, use, owner))\n',
    to: '  if (may_wait)\n',
    program: waiting,
    caughtBy: 'Reclaim.NoSessionLosesMemoryForACallThatWaitsForALimitOfItsOwnSession',
  },
  {
    name: 'memory that a device may still write to is reused',
    file: 'session/server/late.cc',
    from: '  if (kept) link_.fail(',
    to: '  if (false) link_.fail(',
    program: waiting,
    caughtBy: 'Reclaim.RequestsOfStoppedClientsEndTheirSessionsForOthersWhereADeviceReads',
  },
  {
    name: 'a stream that nobody reads keeps memory that other calls wait for',
    file: 'session/server/late.cc',
    from: '  return longest.ns >= kUnreadStreamNs ? longest : UnreadStreams::Longest{};\n',
    to: '  return longest.ns == UINT64_MAX ? longest : UnreadStreams::Longest{};\n',
    program: waiting,
    caughtBy: 'Reclaim.MessagesOfAStreamThatIsNotReadMakeRoomForOthersInTheEnd',
  },
  {
    name: 'a stream loses its messages although its reader makes progress',
    file: 'session/server/responses.cc',
    from: '  if (call.part) watch_.unread().granted(call.bulk->stream, shared_.awake_ns);\n',
    to: '',
    program: waiting,
    caughtBy: 'Reclaim.EachMessageThatIsReadGivesItsStreamTimeAgain',
  },
  {
    name: 'chunks are returned to the system as soon as no lease uses them',
    file: 'memory/arena.cc',
    from: 'if (chunk->leased != 0 || chunk->idle_since > idle_marks_[0]) continue;',
    to: 'if (chunk->leased != 0) continue;',
    program,
    caughtBy: 'IdleArena.ChunksUnusedForLongAreFreedExceptTheLast',
  },
];
