/** The result of a vitest run, for `record`: read from the file that vitest-reporter.mjs writes. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './command.mjs';

/** The arguments of vitest that make it write the report. */
export const reporting = (path) => [
  ...['--reporter=default', `--reporter=${join(root, 'scripts/vitest-reporter.mjs')}`],
  `--outputFile=${path}`,
];

/**
 * `error`: the reason why the command failed, '' when it did not. `failedTests`: those of `failures` that are
 * tests; the others are files or suites that did not load, and errors outside of any test. `ended`: every
 * test has run or was skipped.
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
  // It ended with an error and reports none.
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
