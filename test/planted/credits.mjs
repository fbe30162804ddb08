/**
 * Lists bugs of native/session that let frames use credits that are reserved for other frames. main.mjs uses
 * this table.
 */
const program = 'session_test';

export const creditBugs = [
  {
    name: 'frames may use one credit that is reserved for another kind',
    file: 'session/link/send_queue.h',
    sources: ['session/link/send_queue.cc'],
    from: 'return credits_ >= credits_left + count && room(count);',
    to: 'return credits_ + 1 >= credits_left + count && credits_ >= count && room(count);',
    program,
    caughtBy: 'Credits.OfEachKindOfFrameAreUsedUpToTheReserveOfTheNext',
  },
  {
    name: 'data frames that have waited use the credits reserved for CANCELs',
    file: 'session/link/send_queue.cc',
    from: 'for (; !waiting_.empty() && may_send(kControlCredits + reserved_, ',
    to: 'for (; !waiting_.empty() && may_send(kControlCredits, ',
    program,
    caughtBy: 'Credits.OfEachKindOfFrameAreUsedUpToTheReserveOfTheNext',
  },
  {
    name: 'CANCELs without a reserved credit use those of other CANCELs',
    file: 'session/link/send_queue.cc',
    from: 'if (waiting_control_.empty() && may_send(kCreditFrameCredits + reserved_)) {',
    to: 'if (may_send(kCreditFrameCredits + (done.then != Then::nothing ? 0 : reserved_))) {',
    program,
    caughtBy: 'StoppedServer.LentRequestsEndAtTheirDeadlineThoughManyOtherCallsHaveBeenCancelledBefore',
  },
  {
    name: 'control frames that have waited use the credits reserved for CANCELs',
    file: 'session/link/send_queue.cc',
    from: 'may_send(kCreditFrameCredits + reserved_); waiting_control_',
    to: 'may_send(kCreditFrameCredits); waiting_control_',
    program,
    caughtBy: 'StoppedServer.LentRequestsEndAtTheirDeadlineThoughManyOtherCallsHaveBeenCancelledBefore',
  },
  {
    name: 'the reserved credit of a CANCEL is lost while it waits for room',
    file: 'session/link/send_queue.cc',
    from: 'may_send(kCreditFrameCredits + reserved_)) {',
    to: 'may_send(kCreditFrameCredits + reserved_ - static_cast<std::uint32_t>(waiting_cancels_.size()))) {',
    program,
    caughtBy: 'BlockedPosts.LeaveACancelThatWaitsForRoomItsReservedCredit',
  },
];
