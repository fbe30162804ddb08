/**
 * Decides which failed tests of a suite are run once more in a fresh guest, and merges the two results.
 * Called by test/rdma/main.mjs for the suites that it ran in a guest, never for those on devices of this
 * machine: a NIC has no excuse.
 *
 * The reason: the guest is emulated, and its drivers occasionally lose a wake-up or a packet when the host is
 * busy, which a run cannot distinguish from an error of ours. An error that does not depend on timing fails
 * the second time as well. The results have a line for each such test, which is there to be read: the same
 * name in two runs is no accident.
 */

/** Nothing failed except tests: for example, no file failed to load. */
const allAreTests = ({ failed, failedTests }) => failed === failedTests.length;

/** A suite with more failed tests than this is not repeated: that is no accident. */
export const REPEAT_MAX = 3;

/**
 * The tests to run once more. None when the suite did not run to its end, or when something other than its
 * tests failed: a failure that was not observed cannot be cleared.
 */
export function toRepeat(report) {
  const few = report.failed <= REPEAT_MAX && allAreTests(report);
  return report.ended && few ? report.failedTests : [];
}

/**
 * The result of a suite: `first`, with those tests counted as passed that passed in `second`, the run of its
 * failed tests alone.
 */
export function merge(first, second) {
  const whole = second.ended && allAreTests(second) && second.passed + second.failed === first.failed;
  if (!whole) {
    return { ...first, note: 'the failed tests were run again, and that run did not get to its end' };
  }
  const twice = new Set(second.failedTests.map(({ key }) => key));
  const failedTests = first.failedTests.filter(({ key }) => twice.has(key));
  const once = first.failedTests.filter(({ key }) => !twice.has(key));
  return {
    ...first,
    passed: first.passed + once.length,
    failed: first.failed - once.length,
    failedTests,
    failures: failedTests.map(({ line }) => `${line} (in a fresh guest too)`),
    failedOnce: once.map(({ line }) => line),
  };
}
