/**
 * Decides which failed tests of a suite are run once more in a fresh guest, and merges the two results.
 * test/rdma/main.mjs uses this file for the suites that it ran in a guest. It does not use the file for
 * suites on devices of this machine, whose failures have no such excuse.
 *
 * The reason is that the guest is emulated. Its drivers occasionally lose a wake-up or a packet when the host
 * is busy, and a run cannot distinguish such a loss from an error of ours. An error that does not depend on
 * timing fails the second time as well. The results have a line for each such test, which people should read:
 * the same name in two runs is not an accident.
 */

/** Returns whether only tests failed. For example, it is false when a file failed to load. */
const allAreTests = ({ failed, failedTests }) => failed === failedTests.length;

/** A suite with more failed tests than this is not repeated, because that is not an accident. */
export const REPEAT_MAX = 3;

/**
 * Returns the tests to run once more. The list is empty when the suite did not run to its end, or when
 * something other than its tests failed, because a failure that was not observed cannot be cleared.
 */
export function toRepeat(report) {
  const few = report.failed <= REPEAT_MAX && allAreTests(report);
  return report.ended && few ? report.failedTests : [];
}

/**
 * Returns the result of a suite. The result is that of `first`, except that a failed test counts as passed
 * when it passed in `second`. `second` is a run of the failed tests alone.
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
