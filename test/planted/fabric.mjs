/** Bugs of native/fabric that the tests of the fabrics find by themselves, without the model of shm.mjs. For main.mjs. */
const program = 'fabric_test';

export const fabricBugs = [
  {
    name: 'a question goes into the middle of a request of several frames',
    file: 'fabric/tcp/queue/sending.cc',
    from: '  if (ask_owed_ && next != Line::under_way) return FrameKind::question;',
    to: '  if (ask_owed_ && burst_.empty()) return FrameKind::question;',
    program,
    caughtBy: 'TcpFrameOrder.NoRequestComesBetweenTheFramesOfAnotherWhateverIsPosted',
  },
  {
    name: 'a queue pair with many messages has a batch to itself before others have a turn',
    file: 'fabric/shm/queue/completion_queue.cc',
    from: '      const std::size_t room = std::min(share, out.size() - count);\n      const std::size_t got = poll(*watched_',
    to: '      const std::size_t room = out.size() - count;\n      const std::size_t got = poll(*watched_',
    program,
    caughtBy: 'ShmMany.OneMessageWaitsForAPartOfABatchOfTheOtherOfTwo',
  },
];
