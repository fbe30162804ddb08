/**
 * Which failed tests of a suite are run once more in a fresh guest, and what the two runs come to. Called by
 * test/rdma/main.mjs for the suites that it ran in a guest, never for those on devices of this machine: a NIC
 * has no excuse.
 *
 * Why at all: the guest is emulated, and its drivers lose a wake-up or a packet now and then when its host is
 * busy, which no run of ours can tell from a mistake of ours. A mistake that is not one of timing fails the
 * second time as well. The line that each such test gets in the results is there to be read: the same name in
 * two runs is no accident.
 */

/** Nothing failed beside tests, such as a file that did not load. */
const allAreTests = ({ failed, failedTests }) => failed === failedTests.length;

/** A suite with more failed tests than this is not repeated: that is no accident. */
export const REPEAT_MAX = 3;

/**
 * The tests to run once more. None when the suite did not run to its end, or when something failed that is
 * not one of its tests: what was not seen cannot be taken back.
 */
export function toRepeat(report) {
  const few = report.failed <= REPEAT_MAX && allAreTests(report);
  return report.ended && few ? report.failedTests : [];
}

/**
 * What a suite came to: `first`, with those tests counted as passed that were in `second`, the run of its
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
