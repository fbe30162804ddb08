/**
 * Lists bugs of native/fabric/shm, for main.mjs. Most of them only show in a certain order of single loads
 * and stores, so the model must find them.
 */
const program = 'shm_model_test';

export const shmBugs = [
  {
    name: 'a lost wake-up: a poller checks the rings before it announces that it sleeps',
    file: 'fabric/shm/queue/completion_queue.cc',
    from: `  poller_.sleeping.store(sleeps_ | (solicited_only ? kSolicitedOnly : 0u), std::memory_order_seq_cst);
  device_.collect_announced(std::memory_order_seq_cst);
  bool idle = std::all_of(watched_.begin(), watched_.end(), [](const QueuePair* qp) { return qp->idle(); });
  for (const QueuePair* qp = first_; qp != nullptr && idle; qp = qp->turns.next) idle = qp->idle();
  if (!idle) {
    poller_.sleeping.store(0, std::memory_order_relaxed);
    return false;
  }
`,
    to: `  device_.collect_announced(std::memory_order_seq_cst);
  bool idle = std::all_of(watched_.begin(), watched_.end(), [](const QueuePair* qp) { return qp->idle(); });
  for (const QueuePair* qp = first_; qp != nullptr && idle; qp = qp->turns.next) idle = qp->idle();
  if (!idle) return false;
  poller_.sleeping.store(sleeps_ | (solicited_only ? kSolicitedOnly : 0u), std::memory_order_seq_cst);
`,
    program,
    caughtBy: 'ShmModelWake.AMessageWakesASleeper/LooksByItself',
  },
  {
    name: 'the state of the peer is not checked again once the in-use marker is set',
    file: 'fabric/shm/queue/send_queue.cc',
    from: `  WcStatus status = peer_fault();
  if (status == WcStatus::success) {
    if (device_.options()`,
    to: `  WcStatus status = WcStatus::success;
  if (status == WcStatus::success) {
    if (device_.options()`,
    program,
    caughtBy: 'ShmModel.AFlushedReceiveIsNotAccessed',
  },
  {
    name: 'the header of a message is published with relaxed order',
    file: 'fabric/shm/queue/send_queue.cc',
    from: '  first.header.store(pack(header), std::memory_order_release);',
    to: '  first.header.store(pack(header), std::memory_order_relaxed);',
    program,
    caughtBy: 'ShmModel.MessagesOfEveryNumberOfCellsArriveWhole',
  },
  {
    name: 'no fence between publishing a message and checking whether the peer sleeps',
    file: 'fabric/shm/queue/queue_pair.cc',
    from: '  full_fence();\n  if (peer_announcements_',
    to: '  if (peer_announcements_',
    program,
    caughtBy: 'ShmModelWake.AMessageWakesASleeper/LooksByItself',
  },
  {
    name: 'no fence between announcing a queue pair and checking whether the peer sleeps',
    file: 'fabric/shm/queue/queue_pair.cc',
    from: '    full_fence();\n',
    to: '',
    program,
    caughtBy: 'ShmModelWake.AMessageWakesASleeper/LooksWhenTold',
  },
  {
    name: 'a poller that stops watching a ring does not check it once more',
    file: 'fabric/shm/queue/completion_queue.cc',
    from: '  if (qp.wants_turns() || !qp.idle()) list(qp);\n',
    to: '',
    program,
    caughtBy: 'ShmModelWake.AMessageDuringTheSwitchToSleepIsFound/LooksInTurns',
  },
  {
    name: 'each sleep has the same number, so a peer that has rung once never rings again',
    file: 'fabric/shm/queue/completion_queue.cc',
    from: '  sleeps_ += 2;\n  if (sleeps_ == 0) sleeps_ += 2;',
    to: '  sleeps_ = 2;',
    program,
    caughtBy: 'ShmModelWake.ASleeperIsWokenEachTime/LooksByItself',
  },
  {
    name: "a queue pair that fails does not ring the peer's doorbell",
    file: 'fabric/shm/queue/queue_pair.cc',
    from: '  if (peer_ != nullptr) ring_doorbell({}, true);\n',
    to: '',
    program,
    caughtBy: 'ShmModelWake.AFaultWakesASleeper/LooksByItself',
  },
  {
    name: 'the in-use marker of a placed message is cleared with relaxed order',
    file: 'fabric/shm/queue/send_queue.cc',
    from: '  peer_->in_use.store(0, std::memory_order_release);',
    to: '  peer_->in_use.store(0, std::memory_order_relaxed);',
    program,
    caughtBy: 'ShmModel.AFlushedReceiveIsNotAccessed',
  },
  {
    name: 'the in-use marker of a READ or WRITE may still be in the store buffer when the key is checked',
    file: 'fabric/shm/queue/transfer.cc',
    from: '    peer_->in_use.store(wr.rkey, std::memory_order_seq_cst);',
    to: '    peer_->in_use.store(wr.rkey, std::memory_order_release);',
    program,
    caughtBy: 'ShmModelWindow.IsNotAccessedAfterItsInvalidationHasCompleted/Written',
  },
  {
    name: 'an invalidation does not wait for the copy that is under way',
    file: 'fabric/shm/queue/send_queue.cc',
    from: '  if (peer_holds(key)) await_release(key, revoked.addr, revoked.length);\n',
    to: '  static_cast<void>(revoked);\n',
    program,
    caughtBy: 'ShmModelWindow.IsNotAccessedAfterItsInvalidationHasCompleted/Read',
  },
  {
    name: 'posted receives are published with relaxed order',
    file: 'fabric/shm/queue/receive_queue.cc',
    from: '  own_->posted.store(published_, std::memory_order_release);',
    to: '  own_->posted.store(published_, std::memory_order_relaxed);',
    program,
    caughtBy: 'ShmModel.AReceiveIsFilledOnlyOnceItIsPostedAgain',
  },
  {
    name: "the peer's failure is checked after the ring, so its earlier messages are lost",
    file: 'fabric/shm/queue/receive_queue.cc',
    from: '        if (fault) enter_error(SharedState::error);',
    to: `        if (peer_->state.load() == static_cast<std::uint32_t>(SharedState::fault)) {
          static_cast<void>(fault);
          enter_error(SharedState::error);
        }`,
    program,
    caughtBy: 'ShmModel.MessagesSentBeforeAFaultArrive',
  },
  {
    name: 'a queue pair that is destroyed after a fault shows only that it is closed',
    file: 'fabric/shm/queue/queue_pair.cc',
    from: `    if (shown == SharedState::closed &&
        own_->state.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(SharedState::fault)) {`,
    to: `    if (shown == SharedState::closed) {`,
    program: 'fabric_test',
    caughtBy: 'Fault.EndsThePeerAtItsNextPoll/WithTheRequesterDestroyed',
  },
];
