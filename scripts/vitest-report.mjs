/**
 * Returns the result of a vitest run, for `record`. It is read from the file that vitest-reporter.mjs writes.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './command.mjs';

/** Returns the arguments with which vitest writes the report. */
export const reporting = (path) => [
  ...['--reporter=default', `--reporter=${join(root, 'scripts/vitest-reporter.mjs')}`],
  `--outputFile=${path}`,
];

/**
 * Reads the report that a run of vitest has written. `error` is the reason why the command failed, or '' when
 * it did not fail. `failedTests` are those `failures` that are tests. The other failures are files or suites
 * that did not load, and errors outside of any test. `ended` says whether every test has run or was skipped.
 */
export function readVitest(path, error) {
  if (!existsSync(path)) {
    const note = error || `vitest wrote no ${path}`;
    return { passed: 0, failed: 1, whyNot: [], failures: [], failedTests: [], ended: false, note };
  }
  const { passed, skipped, failed, broken, timed } = JSON.parse(readFileSync(path, 'utf8'));
  const failedTests = failed.map(({ file, names, why }) => {
    const key = [file, ...names].join(' > ');
    return { key, line: `${key}: ${why}`, file, names };
  });
  const failures = [...failedTests.map(({ line }) => line), ...broken];
  // The command ended with an error that the report does not contain.
  const unseen = error !== '' && failures.length === 0;
  return {
    passed,
    failed: unseen ? 1 : failures.length,
    whyNot: Object.entries(skipped).map(
      ([reason, count]) => `${count} tests${reason === '' ? ', marked above' : `: ${reason}`}`,
    ),
    failures,
    failedTests,
    timed,
    ended: true,
    note: unseen ? error : '',
  };
}
