/** Bugs of native/session, for main.mjs. */
const program = 'session_test';

export const sessionBugs = [
  {
    name: 'a control frame that is moved up after a partial post points to where it was',
    file: 'session/link/send_queue.cc',
    from: '        sges_[i][0].addr = reinterpret_cast<std::uint64_t>(controls_[i].data());',
    to: '        ;',
    program,
    caughtBy: 'CutPosts.LoseChangeAndDoubleNothing/0',
  },
  {
    name: 'late answers are not counted, so a server may answer a cancelled call for ever',
    file: 'session/client/calls.cc',
    from: '  --late_expected_;\n',
    to: '',
    program,
    caughtBy: 'Tries/HostileServer.HurtsOnlyItsOwnSession/LateResponseToAReusedSlotTwice',
  },
  {
    name: 'a window is used again although its queue pair has ended with it bound',
    file: 'session/client/revocation.cc',
    from: '    if (windows_intact) shared_.windows.release(std::move(window));',
    to: '    static_cast<void>(windows_intact);\n    shared_.windows.release(std::move(window));',
    program,
    caughtBy: 'Tries/HostileServer.HurtsOnlyItsOwnSession/KeyOfAnotherSession',
  },
  {
    name: 'a peer that returns no credits is waited for without a limit',
    file: 'session/link/link.h',
    sources: ['session/session.cc'],
    from: '      stalled_since_ns_ = std::max<std::uint64_t>(shared_.awake_ns, 1);\n',
    to: '      stalled_since_ns_ = 0;\n',
    program,
    caughtBy: 'HostileClientStalls.AndHoldsSendSlotsOnlyForATime',
  },
  {
    name: 'frames may take one credit of the reserve of the next kind',
    file: 'session/link/send_queue.h',
    sources: ['session/link/send_queue.cc'],
    from: 'return credits_ > credits_left && room(1);',
    to: 'return credits_ >= credits_left && credits_ != 0 && room(1);',
    program,
    caughtBy: 'Credits.OfEachKindOfFrameAreUsedUpToTheReserveOfTheNext',
  },
  {
    name: 'the slot of an inline frame is given back by the post and by its completion',
    file: 'session/link/send_queue.cc',
    from: '    if (wrs_[i].inline_data) give_slot_back(record_of(sequence));',
    to: `    const std::uint32_t slot = record_of(sequence).slot;
    if (wrs_[i].inline_data && slot != kNoSlot) slots_.release(slot);`,
    program,
    caughtBy: 'Connecting.IsAnnouncedOnceBySessionUp',
  },
  {
    name: 'data frames that have waited leave no credit for the CANCELs that were promised one',
    file: 'session/link/send_queue.cc',
    from: '  for (; !waiting_.empty() && may_send(kControlCredits + reserved_); waiting_.pop())',
    to: '  for (; !waiting_.empty() && may_send(kControlCredits); waiting_.pop())',
    program,
    caughtBy: 'Credits.OfEachKindOfFrameAreUsedUpToTheReserveOfTheNext',
  },
  {
    name: 'a caller is told that its call has ended before the CANCEL has arrived',
    file: 'session/client/revocation.cc',
    from: '    if (answered || call.bulk->cancel_arrived || !call.bulk->lends_request || withdraw_request(*call.bulk))\n',
    to: '    if (answered || slot < kCallSlotsMax)\n',
    program,
    caughtBy: 'LateCancel.NobodyIsToldBeforeTheCancelHasArrived',
  },
  {
    name: 'a wire that stands still is waited for until the device gives up',
    file: 'session/client/revocation.cc',
    from: '  return shared_.awake_ns >= still_since_ns_ + kStuckWireNs;\n',
    to: '  return false;\n',
    program,
    caughtBy: 'StuckWire.EndsCallsSoonAfterTheirDeadline',
  },
  {
    name: 'a fetched request is handed over before the frames that came before its last READ are looked at',
    file: 'session/server/requests.cc',
    from: '  if (!queue_was_empty && link_.received() - fetched.received < link_.receive_depth()) return false;\n',
    to: '  static_cast<void>(queue_was_empty);\n',
    program,
    caughtBy: 'LateCancel.IsSeenBeforeTheRequestThatItEndsIsHandedOver',
  },
  {
    name: 'an answer to a call that has not been made yet counts as a late one',
    file: 'session/client/calls.cc',
    from: '  if (age > wire::kGenerationMask / 2 || late_expected_ == 0) return false;',
    to: '  if (late_expected_ == 0) return false;',
    program,
    caughtBy: 'Tries/HostileServer.HurtsOnlyItsOwnSession/ResponseToAFutureCallAfterACancel',
  },
  {
    name: 'a cancelled answer gives its memory back while WRITEs are still made from it',
    file: 'session/server/transfers.cc',
    from: '  if (call.bulk->moved == 0) return refuse(slot, status, true, text);',
    to: '  if (call.bulk->moved != ~0u) return refuse(slot, status, true, text);',
    program,
    caughtBy: 'LateCancel.LeavesTheMemoryOfAnAnswerWhoseWritesAreUnderWay',
  },
  {
    name: 'a staging range of a held call is used again before the peer has answered',
    file: 'session/client/revocation.cc',
    from: '  bulk.told = true;\n',
    to: '  release_staged(call);\n  bulk.told = true;\n',
    program,
    env: { RDMA_RPC_SIM: 'iwarp' },
    caughtBy: 'LateCancel.LeavesItsStagingMemoryToTheWritesThatMayStillCome',
  },
  {
    name: 'the receive of an answer that comes while its call is told of its end is not posted again',
    file: 'session/client/revocation.cc',
    from: `    if (result.word[ev::receive_slot] != 0)
      link_.recycle(static_cast<std::uint32_t>(result.word[ev::receive_slot] - 1));
`,
    to: '',
    program,
    caughtBy: 'Held.WhileTheDeviceIsSlowToInvalidate',
  },
  {
    name: 'the receive of an answer beyond messageMaxBytes is not posted again',
    file: 'session/client/calls.cc',
    from: `    link_.recycle(receive_slot);
    event = failed_event(slot, Reason::too_large, Processed::yes);`,
    to: '    event = failed_event(slot, Reason::too_large, Processed::yes);',
    program,
    caughtBy: 'MessageLimit.BelowTheSlotSizeIsKeptByTheReceiverToo',
  },
  {
    name: 'the receive of a late answer is not posted again',
    file: 'session/client/calls.cc',
    from: `    return link_.recycle(receive_slot);
  }
  if (call.bulk != nullptr && call.bulk->deferred)`,
    to: `    return;
  }
  if (call.bulk != nullptr && call.bulk->deferred)`,
    program,
    caughtBy: 'Tries/HostileServer.HurtsOnlyItsOwnSession/LateResponseAfterACancel',
  },
];
